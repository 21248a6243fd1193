"""What `import headgate` gives."""
