package domain

// ErrNotLeader is returned for a write that was refused because another gateway has taken over the lead.
var ErrNotLeader = Errorf(Unavailable, "another gateway has taken over")
