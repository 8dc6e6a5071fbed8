package worker

import "sync/atomic"

// drops counts messages that are not obeyed.
type drops struct {
	epoch     atomic.Uint64 // of a leader of before
	late      atomic.Uint64 // of a round of before
	malformed atomic.Uint64
}
