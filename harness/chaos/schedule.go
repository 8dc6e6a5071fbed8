package chaos

import (
	"math/rand/v2"
)

// planned is one fault of the schedule.
type planned struct {
	round int // from 1
	fault *fault
	seed  uint64 // of its own choices: which process, how long
}

// streamOf separates the schedule's random numbers from those of anything else
// that may be seeded alike.
const streamOf = 0x636861_6f73

// plan returns the schedule, round by round. With every set, each fault is in each
// round; else measured ones are in two of five, those that last or wait for several
// recoveries in one of twenty, and the others in one of ten, at least in one.
func plan(seed uint64, rounds int, faults []*fault, every bool) []planned {
	rng := rand.New(rand.NewPCG(seed, streamOf))
	in := make([][]*fault, rounds)
	for _, f := range faults {
		n := rounds
		if !every {
			n = f.share(rounds)
		}
		for _, r := range rng.Perm(rounds)[:n] {
			in[r] = append(in[r], f)
		}
	}
	var list []planned
	for r, faults := range in {
		rng.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
		for _, f := range faults {
			list = append(list, planned{r + 1, f, rng.Uint64()})
		}
	}
	return list
}

// share returns in how many of so many rounds a fault is.
func (f *fault) share(rounds int) int {
	if f.measured {
		return (2*rounds + 4) / 5
	}
	if f.holds || f.recoveries > 1 { // it takes several seconds
		return (rounds + 19) / 20
	}
	return (rounds + 9) / 10
}
