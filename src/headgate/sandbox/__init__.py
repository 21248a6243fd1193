"""Sandbox: processes for what strangers have written: operators, stylesheets, HTML.

A sandboxed process has no secrets in its environment, no network, no files but Python's own, limits
on memory and time, and leaves nothing behind. Entry points: `SandboxedProcess` starts one,
`RequestProcess` asks one, `standing_walls` says what this machine's kernel provides.

    confinement      what runs, what it is granted, how it is started and ended; which walls stand
    markup_cost      what sanitising HTML may cost, before it is parsed
    request_process  one request after the other, each within its time
    enter            inside: the supervisor, the walls, then the target
    kernel           namespaces, capabilities, Landlock
    system_calls     the filter of system calls
"""
