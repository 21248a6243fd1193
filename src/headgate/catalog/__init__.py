"""What is registered: sources, feeds, operators, subscriptions, advertisements, snapshots."""
