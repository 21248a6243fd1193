"""Which addresses may be connected to, in every form of an address."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.model.addresses import LOOPBACK, PUBLIC_ONLY, AllowedNetworks, carried_address

PUBLIC = ["8.8.8.8", "1.1.1.1", "93.184.216.34", "2606:4700::1111", "2a00:1450:4001::200e"]
REFUSED = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.168.0.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:0:127.0.0.1",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::8.8.8.8",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2a00::5efe:10.0.0.1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
]

addresses_4 = st.ip_addresses(v=4)


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_connected_to(address: str) -> None:
    assert PUBLIC_ONLY.refusal(address) is None


@pytest.mark.parametrize("address", REFUSED)
def test_other_addresses_are_refused(address: str) -> None:
    refusal = PUBLIC_ONLY.refusal(address)
    assert refusal is not None
    assert refusal.startswith(address)


@given(st.ip_addresses())
def test_addresses_that_python_calls_not_global_are_refused(
    address: IPv4Address | IPv6Address,
) -> None:
    # Python knows some protocols' anycast addresses as global that nobody serves feeds from.
    if not address.is_global and carried_address(address) is None:
        assert PUBLIC_ONLY.refusal(str(address)) is not None


@given(addresses_4)
def test_a_carried_address_is_checked_like_itself(address: IPv4Address) -> None:
    number = int(address)
    expected = PUBLIC_ONLY.refusal(str(address)) is None
    disguises = [
        ip_address(f"::ffff:{address}"),
        IPv6Address((0x64FF9B << 96) | number),
        IPv6Address((0x2002 << 112) | (number << 80) | 1),
        IPv6Address((0x2A00 << 112) | (0x5EFE << 32) | number),
    ]
    for each in disguises:
        assert (PUBLIC_ONLY.refusal(str(each)) is None) == expected, each


@given(addresses_4)
def test_a_setting_allows_its_networks_and_no_others(address: IPv4Address) -> None:
    allowed = AllowedNetworks.of("10.0.0.0/8")
    inside = int(address) >> 24 == 10
    public = PUBLIC_ONLY.refusal(str(address)) is None
    assert (allowed.refusal(str(address)) is None) == (inside or public)


def test_loopback_may_be_allowed_in_any_form() -> None:
    for address in ("127.0.0.1", "::1", "::ffff:127.0.0.1"):
        assert LOOPBACK.refusal(address) is None
    assert LOOPBACK.refusal("10.0.0.1") is not None
