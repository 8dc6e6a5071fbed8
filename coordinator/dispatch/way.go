package dispatch

import "time"

// way is how long answers of a job's summed rounds lately were under way: all that is not
// computing. On a thin link an answer waits behind blobs, for longer than round trips of
// small messages tell. The longest counts, and is forgotten over many rounds.
type way struct {
	longest time.Duration
	round   time.Duration // of the present round
	again   bool          // a unit of the round was given again: its answers tell nothing
}

// wayRounds is over how many rounds a long way is forgotten.
const wayRounds = 32

// begin begins a round.
func (w *way) begin() { w.round, w.again = 0, false }

// came notes an answer that came so long after the round began, of which it was computed
// for a part.
func (w *way) came(after, computed time.Duration) {
	w.round = max(w.round, after-computed)
}

// end ends a round; what a leader that hung would measure is bounded by most.
func (w *way) end(most time.Duration) {
	if w.again {
		return
	}
	w.longest = max(min(w.round, most), w.longest-w.longest/wayRounds)
}
