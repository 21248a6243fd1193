"""Operators to use and to learn from: places, detections in pictures, languages."""
