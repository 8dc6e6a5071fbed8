package access

// Forwarded reads the caller of a request that a coordinator forwards.
var Forwarded = forwarded
