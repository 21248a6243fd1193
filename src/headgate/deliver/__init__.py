"""From matched items to feeds, mails, webhook calls and lines: rendering, XSLT, outputs, outbox."""
