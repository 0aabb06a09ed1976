"""From `output/` to a store: what a publish does, in the order in which it does it.

    publication.Publication     read folder, record and blocked list; refuse what looks like an accident
            │
            ▼   protocol.Run: frozen; each station returns it as it goes on
    prove → compare             probe the store once a week; in doubt or verifying, list it; plan
            │
            ▼  ◄──────────────  another plan, if `look` or `check` finds something new
    intend                      the record names everything about to be written, and who writes until when
    look                        the blocked list as it is now, with the hold
    apply                       details of withdrawn markets are deleted; generations, details, documents, lists put
    commit                      the record says what is published now
    check                       the blocked list again; in doubt, a listing of the store, too
            │
            ▼
    sweep → release → notify    what is due is deleted, copies end; nobody is at work; followers are told

A takedown (`takedown`) writes the blocked list and deletes details first. Then it goes the same way from `compare` on,
with the store's own state without the markets (`withdrawal`) in place of a folder.

Imports `site`, `stores`, `cost`, `tree`, `api` and `config`, never `builder`. Start with `publication`, then
`protocol`.
"""
