"""Operators to use and to learn from; statements refer to them by module and function.

places        where an item is: areas and places of New York
detections    what is in a picture: crowds, chases, traffic, counts
language      the language of a text
drones        generates items with pictures, to try the others on
"""
