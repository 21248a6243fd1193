"""The HTTP service, `headgate serve`: what people reach by a link in a mail.

It calls `api/` and knows no tables. FastAPI and uvicorn are imported by this room only, and this
room only by `headgate serve`, since they take half a second to load. Entry points: `app.make_app`
and `server.serve`.

    app            the application: resources, and headers of every answer
    receivers      /confirm/… and /unsubscribe/…: the links in mails
    request_body   bodies within limits of size and time
    server         uvicorn with bounded connections, and without a log of paths
"""
