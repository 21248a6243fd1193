"""Secrets and tokens: each for one subscription and purpose, and nothing else proves it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from headgate.model.receiver_secrets import (
    TOKEN_LENGTH_MAX,
    LinkPurpose,
    link_token,
    proves,
    read_token,
    webhook_secret,
)

KEY = b"key"
ids = st.integers(1, 10**18 - 1)
lasts = st.none() | ids


@given(ids, lasts, st.sampled_from(LinkPurpose), st.text(max_size=64))
def test_a_token_proves_what_it_was_made_for(id_, last, purpose, salt):
    token = link_token(KEY, purpose, id_, salt=salt, last=last)
    assert len(token) <= TOKEN_LENGTH_MAX
    read = read_token(token)
    assert (read.subscription, read.last) == (id_, last)
    assert proves(KEY, purpose, read, salt=salt)


@given(ids, lasts, ids, lasts, st.sampled_from(LinkPurpose))
def test_it_proves_nothing_else(id_, last, other_id, other_last, purpose):
    token = read_token(link_token(KEY, purpose, id_, salt="a", last=last))
    others = [each for each in LinkPurpose if each is not purpose]
    assert not any(proves(KEY, each, token, salt="a") for each in others)
    assert not proves(KEY, purpose, token, salt="b")
    assert not proves(b"other", purpose, token, salt="a")
    if (other_id, other_last) != (id_, last):
        moved = type(token)(other_id, other_last, token.proof)
        assert not proves(KEY, purpose, moved, salt="a")


@pytest.mark.parametrize(
    "text", ["", "7", "7-", "-7-" + "a" * 43, "07-" + "a" * 43, "7-" + "a" * 42, "7-" + "é" * 43]
)
def test_what_is_no_token(text: str):
    assert read_token(text) is None
    assert read_token("9" * 10_000_000) is None


def test_secrets_differ_and_verify():
    made = {
        webhook_secret(key, id_, number=number, salt=salt)
        for key in (b"a", b"b")
        for id_ in (1, 2)
        for number in (1, 2)
        for salt in ("x", "y")
    }
    assert len(made) == 16
    for secret in made:
        assert len(Webhook(secret)._whsecret) == 32
