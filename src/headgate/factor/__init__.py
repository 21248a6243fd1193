"""RoSeS: factorising the filters of a source by cost."""
