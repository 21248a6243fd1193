"""What the whole system speaks of: items, schemas, values, atoms, filters, errors. No I/O."""
