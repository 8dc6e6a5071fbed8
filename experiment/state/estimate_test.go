package state

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestEstimateOf(t *testing.T) {
	for _, c := range []struct {
		name  string
		runs  []Runs
		slots int
		want  Estimate
	}{
		{"nothing", nil, 1, Estimate{}},
		{"all have ended", []Runs{{Method: "a", All: 3, Ended: 3}}, 1, Estimate{}},
		{"one method", []Runs{{Method: "a", All: 10, Ended: 2, Timed: 2, Seconds: 6}}, 4, Estimate{6, "from 2 of 10 runs"}},
		{"no time of its own", []Runs{{Method: "a", All: 10, Ended: 2, Timed: 2, Seconds: 6},
			{Method: "b", Dataset: "d", All: 1}}, 1, Estimate{0, "no run of b on d has ended yet"}},
		{"a dataset of another size", []Runs{{Method: "a", All: 2, Ended: 2, Timed: 2, Seconds: 8, Size: 100},
			{Method: "a", Dataset: "d", All: 1, Size: 500}}, 1, Estimate{0, "no run of a on d has ended yet"}},
		{"a dataset whose size is not known", []Runs{{Method: "a", All: 2, Ended: 2, Timed: 2, Seconds: 8},
			{Method: "a", Dataset: "d", All: 1, Size: 3}}, 1, Estimate{0, "no run of a on d has ended yet"}},
		{"runs of an earlier submission", []Runs{{Method: "a", Dataset: "d", All: 4, Ended: 2}}, 1,
			Estimate{0, "no run of a on d has ended well yet"}},
		{"not run", []Runs{{Method: "a", All: 10, Ended: 10}, {Method: "b", All: 4, Ended: 1, Timed: 1, Seconds: 5}}, 1,
			Estimate{15, "from 1 of 4 runs of b, which has most left"}},
		{"the longest run", []Runs{{Method: "a", All: 10, Ended: 9, Timed: 9, Seconds: 90}}, 8,
			Estimate{10, "from 9 of 10 runs"}},
		{"running", []Runs{{Method: "a", All: 4, Ended: 1, Timed: 1, Seconds: 10, Running: []float64{4, 20}}}, 1,
			Estimate{15 + 11 + 2, "from 1 of 4 runs"}},
		{"another dataset", []Runs{{Method: "a", All: 2, Ended: 2, Timed: 2, Seconds: 8, Size: 100},
			{Method: "a", Dataset: "d", All: 1, Size: 300}}, 1, Estimate{12, "from 2 of 3 runs, scaled to the size of d"}},
		{"other datasets, growing with the square", []Runs{
			{Method: "a", All: 1, Ended: 1, Timed: 1, Seconds: 1, Size: 100}, {Method: "a", All: 1, Ended: 1, Timed: 1,
				Seconds: 4, Size: 200}, {Method: "a", Dataset: "d", All: 1, Size: 400},
		}, 1, Estimate{16, "from 2 of 3 runs, scaled to the size of d"}},
		{"a method that fails", []Runs{{Method: "a", All: 10, Ended: 2, Timed: 2, Seconds: 6},
			{Method: "b", Dataset: "d", All: 3, Ended: 2}}, 4,
			Estimate{6, "from 2 of 10 runs of a, which has most left; without b on d, because no run of it has ended well"}},
		{"methods that fail", []Runs{{Method: "a", All: 10, Ended: 2, Timed: 2, Seconds: 6},
			{Method: "b", Dataset: "d", All: 3, Ended: 2}, {Method: "c", Dataset: "d", All: 3, Ended: 1}}, 4,
			Estimate{6, "from 2 of 10 runs of a, which has most left; without b on d and 1 more, because no run of them has " +
				"ended well"}},
		{"a method that fails, and a method without a time", []Runs{{Method: "b", Dataset: "d", All: 3, Ended: 2},
			{Method: "a", Dataset: "d", All: 10}}, 4, Estimate{0, "no run of a on d has ended yet"}},
	} {
		got := EstimateOf(c.runs, c.slots)
		if math.Abs(got.Seconds-c.want.Seconds) > 1e-9 || got.From != c.want.From {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// plan is a made-up experiment: what the runs of each method on each dataset really take.
type plan struct {
	runs []Runs
	took [][]float64 // by entry of runs
}

// makePlan draws methods of very different lengths on datasets of mixed sizes. The runs of a method on a dataset differ
// by a tenth, and what a method takes grows with the size by an exponent of its own.
func makePlan(r *rand.Rand, methods, datasets, folds int) *plan {
	p := new(plan)
	for m := range methods {
		base, growth := math.Exp(r.Float64()*5)/1e3, 0.7+r.Float64()*0.8
		for d := range datasets {
			size := math.Exp(float64(d) + r.Float64())
			own := Runs{Method: fmt.Sprint("m", m), Dataset: fmt.Sprint("d", d), All: folds, Size: size}
			var took []float64
			for range folds {
				took = append(took, base*math.Pow(size, growth)*math.Exp(0.1*r.NormFloat64()))
			}
			p.runs, p.took = append(p.runs, own), append(p.took, took)
		}
	}
	return p
}

// TestEstimateAgainstTruth lets made-up experiments run. From a tenth of the work on, an estimate is within a factor of
// two of the truth, or within a tenth of the whole time. Few experiments have none then: those with hardly more runs
// than slots.
func TestEstimateAgainstTruth(t *testing.T) {
	shares := []float64{0.1, 0.25, 0.5, 0.75}
	none := make([]int, len(shares))
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := makePlan(r, 2+r.IntN(8), 1+r.IntN(5), 5+r.IntN(10))
		slots := 1 + r.IntN(8)
		estimates, truths, whole := p.follow(slots, shares)
		for i, e := range estimates {
			switch {
			case strings.HasPrefix(e.From, "no run of") && e.Seconds == 0:
				none[i]++
			case !strings.HasPrefix(e.From, "from ") || (e.Seconds < truths[i]/2 || e.Seconds > 2*truths[i]) &&
				math.Abs(e.Seconds-truths[i]) > whole/10:
				t.Errorf("seed %d, %d slots, %.0f %% of the work: %+v, and it took %.3g s of %.3g", seed, slots, 100*shares[i], e,
					truths[i], whole)
			}
		}
	}
	if t.Logf("without an estimate: %d of 500", none); none[0] > 200 || none[1] > 60 || none[3] > 20 {
		t.Error("too few estimates")
	}
}

// follow computes the runs as a cluster does: by fold, and the longest first once little waits. It returns the
// estimates at shares of the work, what it took from there on, and in all.
func (p *plan) follow(slots int, shares []float64) (estimates []Estimate, left []float64, whole float64) {
	type computing struct {
		of         int
		began, end float64
	}
	var order []int // entries of runs, by fold
	for fold := range p.runs[0].All {
		for i := range p.runs {
			if fold < p.runs[i].All {
				order = append(order, i)
			}
		}
	}
	work := 0.0
	for _, took := range p.took {
		for _, s := range took {
			work += s
		}
	}
	var running []computing
	var at, done float64
	begun := make([]int, len(p.runs))
	for len(order)+len(running) > 0 {
		for len(running) < slots && len(order) > 0 {
			longest, waits := 0, 0.0
			for k, i := range order {
				waits += p.took[i][0]
				if p.took[i][0] > p.took[order[longest]][0] {
					longest = k
				}
			}
			k := 0
			if waits < float64(slots)*2*p.took[order[longest]][0] {
				k = longest
			}
			i := order[k]
			order = slices.Delete(order, k, k+1)
			running = append(running, computing{i, at, at + p.took[i][begun[i]]})
			begun[i]++
		}
		first := 0
		for k := range running {
			if running[k].end < running[first].end {
				first = k
			}
		}
		c := running[first]
		running = slices.Delete(running, first, first+1)
		at = c.end
		own := &p.runs[c.of]
		own.Ended, own.Timed, own.Seconds, done = own.Ended+1, own.Timed+1, own.Seconds+c.end-c.began, done+c.end-c.began
		for len(left) < len(shares) && done >= shares[len(left)]*work {
			for i := range p.runs {
				p.runs[i].Running = nil
			}
			for _, c := range running {
				p.runs[c.of].Running = append(p.runs[c.of].Running, at-c.began)
			}
			estimates, left = append(estimates, EstimateOf(p.runs, slots)), append(left, -at)
		}
	}
	for i := range left {
		left[i] += at
	}
	return estimates, left, at
}
