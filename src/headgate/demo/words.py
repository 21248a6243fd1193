"""The word lists that all texts are made of. All bands but Muse ([RoSeS §3.1]) are made up."""

from __future__ import annotations

from typing import NamedTuple


class Band(NamedTuple):
    name: str
    genre: str


class Place(NamedTuple):
    """A city and its concert hall; each city has one, so that photos of one evening look alike."""

    city: str
    venue: str


MUSE = Band("Muse", "rock")

BANDS = (
    MUSE,
    Band("Sluicegate", "rock"),
    Band("Northern Ditch", "rock"),
    Band("The Weir Sisters", "rock"),
    Band("Hollow Penstock", "rock"),
    Band("Millpond Quartet", "jazz"),
    Band("Blue Culvert", "jazz"),
    Band("Ada Lindqvist Trio", "jazz"),
    Band("Oxbow Lanterns", "folk"),
    Band("Tin Kettle", "folk"),
    Band("Delta Phase", "electronic"),
    Band("Nachtkanal", "electronic"),
    Band("Aqueduct Ensemble", "classical"),
    Band("Spillway Crew", "hip hop"),
)

PLACES = (
    Place("Lyon", "Halle Neuve"),
    Place("Paris", "Salle du Canal"),
    Place("Athens", "Pergola Stage"),
    Place("Heraklion", "Harbour Stage"),
    Place("Hamburg", "Speicher Neun"),
    Place("Vienna", "Kanalhof"),
    Place("Lisbon", "Doca Velha"),
    Place("Dublin", "Lock House"),
    Place("Ghent", "Sluishuis"),
    Place("Porto", "Ribeira Hall"),
    Place("Toulouse", "Le Bief"),
    Place("Leeds", "Weir Works"),
)

DESTINATIONS = (*(each.city for each in PLACES), "London", "London", "London Gatwick")

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
HOURS = ("18:30", "19:00", "19:30", "20:00", "20:30", "21:00")

FRIENDS = ("Alice", "Bruno", "Chloé", "Dimitra", "Emil", "Farid", "Greta", "Hélène")
REPORTERS = (
    "Ines Calder",
    "Joris Vane",
    "Katia Moreau",
    "Lars Brook",
    "Mina Okafor",
    "Nikos Reed",
    "Olga Ferry",
)

ALBUMS = ("Low Water", "Paper Bridges", "Tidal Clock", "Nine Gates", "Salt and Wire", "Upstream")
INSTRUMENTS = ("the guitars", "the drums", "the bass", "the strings", "the organ", "the choir")
MOODS = ("loud", "quiet", "strange", "slow", "bright", "restless", "warm", "honest")
MOMENTS = ("the encore", "first row", "sound check", "the lights", "last song", "the crowd")
DETAILS = ("second night added", "last tickets", "doors at eight", "sound check today")

EVENTS = (
    ("Book fair", "books", "Sixty publishers show what they print"),
    ("Flea market", "market", "Lamps, records and chairs from a hundred attics"),
    ("Open garden", "garden", "Roses, bees and a long table under the trees"),
    ("Film night", "film", "Three short films and a talk with those who made them"),
    ("Chess in the park", "games", "Forty boards are set up; beginners are welcome"),
    ("Poetry reading", "books", "New poems by five authors, read by themselves"),
)

MEALS = ("onion soup", "lentils", "plum cake", "fresh bread", "a huge omelette", "baked fish")
CHORES = (
    "painted the kitchen",
    "repaired the old bicycle",
    "planted tomatoes on the balcony",
    "cleaned out the cellar",
    "learned to bake bread",
    "walked along the canal",
)
SIGHTS = (
    "Fog over the canal",
    "Cat on the piano",
    "Breakfast on the roof",
    "Boats in the old lock",
    "Snow on the bridge",
    "Evening at the harbour",
)

STREETS = ("Mill Street", "Canal Row", "Lock Lane", "Station Road", "Bridge Square", "Quay Street")
LINES = ("tram 2", "tram 5", "bus 14", "bus 31", "the night train", "the ferry")
SKIES = ("heavy rain", "thick fog", "strong wind", "a clear night", "the first frost", "sunshine")

COMPANIES = (
    "ACME",
    "ACME",
    "ACME",
    "Bluefin Freight",
    "Carbon Loom",
    "Quarry and Sons",
    "Wattline",
)
PRODUCTS = (
    "anvils",
    "rocket skates",
    "giant magnets",
    "spring shoes",
    "iron seed",
    "portable doors",
)
SHOPS = ("rail.example", "rail.example", "fly.example", "ferry.example", "resale.example")
