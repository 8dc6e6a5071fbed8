package childjob_test

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/engine/outcome/childjob"
	"github.com/coppice-ldl/coppice/engine/round"
)

// timedTask is a task of a recorded run: when it began and ended in milliseconds, and its steps.
type timedTask struct {
	kind, began, ended int
	steps              uint64
}

// faces is a recorded run of the default ensemble on 2,500 samples with 243 features, in two lanes of a loaded machine:
// structrf, ldlf and ldlogitboost.
var faces = []timedTask{
	{1, 0, 1404, 1824}, {0, 0, 2497, 200}, {0, 2497, 4444, 200}, {1, 4444, 5662, 1596}, {2, 5662, 26602, 322}, {0, 26603, 30728, 200},
	{1, 30728, 34234, 1824}, {2, 1404, 44213, 500}, {0, 44213, 48161, 200}, {1, 48161, 49154, 988}, {2, 34234, 76736, 465}, {0, 76736, 78649, 200},
	{1, 78649, 80114, 1710}, {2, 49154, 93076, 500}, {0, 93079, 98088, 200}, {1, 98088, 101455, 1824}, {2, 80114, 120257, 308}, {2, 101455, 142790, 347},
}

// genes is one in one lane on 2,465 samples of three labels: structrf, ldlf, aa-knn and df-ldl.
var genes = []timedTask{
	{0, 0, 572, 200}, {1, 572, 776, 532}, {2, 776, 837, 2}, {3, 837, 876, 6}, {0, 877, 1286, 200}, {1, 1286, 1632, 988}, {2, 1632, 1690, 2},
	{3, 1690, 1725, 6}, {0, 1725, 2202, 200}, {1, 2203, 2504, 874}, {2, 2504, 2578, 2}, {3, 2578, 2610, 6}, {0, 2610, 3034, 200},
	{1, 3034, 3353, 988}, {2, 3353, 3420, 2}, {3, 3420, 3450, 6}, {0, 3450, 3843, 200}, {1, 3843, 4007, 494}, {2, 4007, 4054, 2},
	{3, 4054, 4081, 6}, {0, 4081, 4500, 200}, {1, 4500, 4607, 228}, {2, 4607, 4660, 2}, {3, 4660, 4688, 6},
}

// at returns the tasks as they are known at a time. Steps of a task follow each other evenly. Kinds with a limit say that they take
// so many steps or fewer, until they end.
func at(run []timedTask, limits []uint64, now float64) (kinds [][]round.TaskProgress) {
	kinds = make([][]round.TaskProgress, len(limits))
	for _, r := range run {
		began, ended := float64(r.began)/1000, float64(r.ended)/1000
		var t round.TaskProgress
		if began <= now {
			t.Note(round.Progress{Steps: r.steps}, began)
			p := round.Progress{Step: uint64(float64(r.steps) * min(1, (now-began)/(ended-began))), Steps: r.steps}
			if t.Done = ended <= now; !t.Done && limits[r.kind] > 0 {
				p.Steps, p.MostSteps = limits[r.kind], limits[r.kind]
			}
			t.Note(p, min(now, ended))
		}
		kinds[r.kind] = append(kinds[r.kind], t)
	}
	return kinds
}

// TestFraction: from a tenth of its time on, what remains of a recorded run is estimated within a factor of about two, though
// the speed of the machine changed by half. While a kind that may end early has not ended once, the estimate is an upper bound.
func TestFraction(t *testing.T) {
	for name, test := range map[string]struct {
		run    []timedTask
		limits []uint64
	}{"faces": {faces, []uint64{0, 25000, 500}}, "genes": {genes, []uint64{0, 25000, 0, 0}}} {
		end := 0.0
		for _, r := range test.run {
			end = max(end, float64(r.ended)/1000)
		}
		for percent := 10.0; percent <= 90; percent++ {
			now := end * percent / 100
			kinds := at(test.run, test.limits, now)
			f, ok := childjob.Fraction(kinds)
			if !ok {
				t.Fatalf("%s: nothing is known at %v %%", name, percent)
			}
			open := false
			for k, tasks := range kinds {
				sum, _ := childjob.Sum(tasks)
				open = open || test.limits[k] > 0 && sum.MostSteps > 0
			}
			if ratio := now * (1 - f) / f / (end - now); ratio < 1/2.1 || ratio > 2.1 && !open {
				t.Errorf("%s: at %v %%, the estimate is %.2f of what remains", name, percent, ratio)
			}
		}
	}
}

// TestFractionOfKinds: results from before the round count as time that was spent, a kind that has not begun costs as much as the
// others, the longest task bounds the rest from below, and without times nothing is known.
func TestFractionOfKinds(t *testing.T) {
	task := func(step, steps uint64, began, last float64, done bool) (t round.TaskProgress) {
		t.Note(round.Progress{Steps: steps}, began)
		t.Note(round.Progress{Step: step, Steps: steps}, last)
		t.Done = done
		return t
	}
	before := round.TaskProgress{Progress: round.Progress{Step: 10, Steps: 10}, Known: true, Done: true}
	resumed := func() (t round.TaskProgress) {
		t.Note(round.Progress{Step: 50, Steps: 100}, 0)
		t.Note(round.Progress{Step: 75, Steps: 100}, 10)
		return t
	}()
	waits := round.TaskProgress{}
	for name, test := range map[string]struct {
		kinds [][]round.TaskProgress
		want  float64
	}{
		"one half":          {[][]round.TaskProgress{{task(10, 10, 0, 8, true), waits}}, 0.5},
		"not begun":         {[][]round.TaskProgress{{task(10, 10, 0, 8, true)}, {waits}}, 0.5},
		"before the round":  {[][]round.TaskProgress{{before, task(10, 10, 0, 8, true), waits, waits}}, 0.5},
		"resumed":           {[][]round.TaskProgress{{resumed}}, 0.75},
		"steps not known":   {[][]round.TaskProgress{{task(5, 0, 0, 8, false), task(0, 0, 0, 8, false)}}, 10.0 / 11},
		"two at a time":     {[][]round.TaskProgress{{task(5, 10, 0, 8, false), task(5, 10, 0, 8, false)}}, 0.5},
		"the longest bound": {[][]round.TaskProgress{{task(9, 10, 0, 9, false), task(9, 10, 0, 9, false)}, {task(9, 90, 0, 9, false)}}, 0.1},
	} {
		if got, ok := childjob.Fraction(test.kinds); !ok || math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s: %v, %v; want %v", name, got, ok, test.want)
		}
	}
	if _, ok := childjob.Fraction([][]round.TaskProgress{{before, waits}, {waits}}); ok {
		t.Error("an estimate without a time")
	}
}
