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
	{kind: 1, began: 0, ended: 1404, steps: 1824}, {kind: 0, began: 0, ended: 2497, steps: 200},
	{kind: 0, began: 2497, ended: 4444, steps: 200}, {kind: 1, began: 4444, ended: 5662, steps: 1596},
	{kind: 2, began: 5662, ended: 26602, steps: 322}, {kind: 0, began: 26603, ended: 30728, steps: 200},
	{kind: 1, began: 30728, ended: 34234, steps: 1824}, {kind: 2, began: 1404, ended: 44213, steps: 500},
	{kind: 0, began: 44213, ended: 48161, steps: 200}, {kind: 1, began: 48161, ended: 49154, steps: 988},
	{kind: 2, began: 34234, ended: 76736, steps: 465}, {kind: 0, began: 76736, ended: 78649, steps: 200},
	{kind: 1, began: 78649, ended: 80114, steps: 1710}, {kind: 2, began: 49154, ended: 93076, steps: 500},
	{kind: 0, began: 93079, ended: 98088, steps: 200}, {kind: 1, began: 98088, ended: 101455, steps: 1824},
	{kind: 2, began: 80114, ended: 120257, steps: 308}, {kind: 2, began: 101455, ended: 142790, steps: 347},
}

// genes is one in one lane on 2,465 samples of three labels: structrf, ldlf, aa-knn and df-ldl.
var genes = []timedTask{
	{kind: 0, began: 0, ended: 572, steps: 200}, {kind: 1, began: 572, ended: 776, steps: 532},
	{kind: 2, began: 776, ended: 837, steps: 2}, {kind: 3, began: 837, ended: 876, steps: 6},
	{kind: 0, began: 877, ended: 1286, steps: 200}, {kind: 1, began: 1286, ended: 1632, steps: 988},
	{kind: 2, began: 1632, ended: 1690, steps: 2},
	{kind: 3, began: 1690, ended: 1725, steps: 6}, {kind: 0, began: 1725, ended: 2202, steps: 200},
	{kind: 1, began: 2203, ended: 2504, steps: 874}, {kind: 2, began: 2504, ended: 2578, steps: 2},
	{kind: 3, began: 2578, ended: 2610, steps: 6}, {kind: 0, began: 2610, ended: 3034, steps: 200},
	{kind: 1, began: 3034, ended: 3353, steps: 988}, {kind: 2, began: 3353, ended: 3420, steps: 2},
	{kind: 3, began: 3420, ended: 3450, steps: 6}, {kind: 0, began: 3450, ended: 3843, steps: 200},
	{kind: 1, began: 3843, ended: 4007, steps: 494}, {kind: 2, began: 4007, ended: 4054, steps: 2},
	{kind: 3, began: 4054, ended: 4081, steps: 6}, {kind: 0, began: 4081, ended: 4500, steps: 200},
	{kind: 1, began: 4500, ended: 4607, steps: 228}, {kind: 2, began: 4607, ended: 4660, steps: 2},
	{kind: 3, began: 4660, ended: 4688, steps: 6},
}

// at returns the tasks as they are known at a time. Steps of a task follow each other evenly. Kinds with a limit say
// that they take so many steps or fewer, until they end.
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

// TestFraction: from a tenth of its time on, what remains of a recorded run is estimated within a factor of about two,
// though the speed of the machine changed by half. While a kind that may end early has not ended once, the estimate is
// an upper bound.
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

// TestFractionOfKinds: results from before the round count as time that was spent, a kind that has not begun costs as
// much as the others, the longest task bounds the rest from below, and without times nothing is known.
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
		"one half":         {[][]round.TaskProgress{{task(10, 10, 0, 8, true), waits}}, 0.5},
		"not begun":        {[][]round.TaskProgress{{task(10, 10, 0, 8, true)}, {waits}}, 0.5},
		"before the round": {[][]round.TaskProgress{{before, task(10, 10, 0, 8, true), waits, waits}}, 0.5},
		"resumed":          {[][]round.TaskProgress{{resumed}}, 0.75},
		"steps not known":  {[][]round.TaskProgress{{task(5, 0, 0, 8, false), task(0, 0, 0, 8, false)}}, 10.0 / 11},
		"two at a time":    {[][]round.TaskProgress{{task(5, 10, 0, 8, false), task(5, 10, 0, 8, false)}}, 0.5},
		"the longest bound": {[][]round.TaskProgress{{task(9, 10, 0, 9, false), task(9, 10, 0, 9, false)},
			{task(9, 90, 0, 9, false)}}, 0.1},
	} {
		if got, ok := childjob.Fraction(test.kinds); !ok || math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s: %v, %v; want %v", name, got, ok, test.want)
		}
	}
	if _, ok := childjob.Fraction([][]round.TaskProgress{{before, waits}, {waits}}); ok {
		t.Error("an estimate without a time")
	}
}
