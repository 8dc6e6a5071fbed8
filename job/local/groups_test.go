package local

import (
	"fmt"
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/job/open"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// people is a dataset with a planted leak: each person has features and a label distribution of their own, and nothing
// connects the two. A model that has seen a sample of a person predicts the others well, and no model predicts a new
// person.
type people struct {
	persons, each int
	grouped       bool // true if the dataset says which samples are of one person
}

func (p people) Info() dataset.Info {
	return dataset.Info{Features: 4, Labels: 3, HasGroups: p.grouped}
}

func (p people) Scan(f func(*dataset.Row) error) error {
	of, noise := num.NewKey(1, "test/person"), num.NewKey(1, "test/noise")
	for i := range p.persons * p.each {
		person := i % p.persons
		s, e := num.NewStream(of, uint64(person), 0), num.NewStream(noise, uint64(i), 0)
		row := dataset.Row{Number: i, Group: fmt.Sprintf("person %d", person), Labels: []float64{.05, .05, .05}}
		for range 4 {
			row.Values = append(row.Values, s.Float64()+.01*e.Float64())
		}
		row.Labels[int(3*s.Float64())] = .9
		if err := f(&row); err != nil {
			return err
		}
	}
	return nil
}

// built returns the dataset. Two of its folds have persons that the other folds lack.
func (p people) built(t *testing.T) *Data {
	t.Helper()
	d := new(Data)
	var err error
	d.Manifest, d.Shards, err = importer.Build(p, importer.Options{Groups: func(g []uint16) { d.Groups = g }})
	if err != nil {
		t.Fatal(err)
	}
	for i := range d.Manifest.Rows {
		d.Assigned = append(d.Assigned, uint16(min(1, i%p.persons%4)))
	}
	return d
}

// boosted is a job that validates, and tests on new people.
func boosted() protocol.Spec {
	fold := 0
	return protocol.Spec{Algorithm: "ldlboost", Folds: 2, Fold: &fold, Assigned: "persons",
		Set: map[string]string{"rounds": "60", "refit": "false", "validation_fraction": "0.2", "patience": "1000"}}
}

// TestPlantedLeak: if persons cross, the validation loss is far lower than the loss on new people, and falls with each
// round. With groups, it is about as high, and tells early that nothing is learned.
func TestPlantedLeak(t *testing.T) {
	lowest := func(o *pipeline.Outcome) (loss float64, at uint64) {
		loss = math.Inf(1)
		for _, p := range o.Curve.Points() {
			if p.Validation < loss {
				loss, at = p.Validation, p.Step
			}
		}
		return loss, at
	}
	trained := func(grouped bool) *pipeline.Outcome {
		d := people{persons: 60, each: 8, grouped: grouped}.built(t)
		return run(t, d, resolve(t, d, boosted()), Options{Points: curve.JobPoints})
	}
	crossing, whole := trained(false), trained(true)
	leaked, late := lowest(crossing)
	honest, early := lowest(whole)
	t.Logf("lowest validation loss: %.3f at round %d if persons cross, %.3f at round %d with groups; new people: %.3f and "+
		"%.3f", leaked, late, honest, early, crossing.Measures[0].Mean, whole.Measures[0].Mean)
	if unseen := crossing.Measures[0].Mean; leaked > .2*unseen {
		t.Errorf("there is no leak: the validation loss is %v, the loss on new people %v", leaked, unseen)
	}
	if honest < 3*leaked || early >= late {
		t.Errorf("with groups, the lowest validation loss is %v at round %d, and %v at round %d without", honest, early, leaked,
			late)
	}
}

// TestGroupsStayWhole: no group is on both sides, in the sub-jobs of folds, of ensembles and of the screening.
func TestGroupsStayWhole(t *testing.T) {
	d := people{persons: 12, each: 10, grouped: true}.built(t)
	few := people{persons: 3, each: 40, grouped: true}.built(t)
	ensemble := map[string]string{"members": "structrf:trees=2,ldlf:steps=20:trees=2"}
	for name, c := range map[string]struct {
		data *Data
		spec protocol.Spec
		held bool // true if the job itself has validation rows
	}{
		"early stopping":     {d, boosted(), true},
		"a test fraction":    {d, protocol.Spec{Algorithm: "ldlf", TestFraction: 0.2}, true},
		"folds of rows":      {d, protocol.Spec{Algorithm: "ldlf", Folds: 3}, true},
		"a training part":    {d, protocol.Spec{Algorithm: "ldlf", TrainFraction: 0.5}, true},
		"folds of groups":    {d, protocol.Spec{Algorithm: "ldlf", GroupFolds: true}, true},
		"a screening":        {d, protocol.Spec{Algorithm: "ldlf", TestFraction: 0.2, Screen: true}, true},
		"an ensemble":        {d, protocol.Spec{Algorithm: "ensemble", TestFraction: 0.2, Set: ensemble}, false},
		"ensemble, groups":   {d, protocol.Spec{Algorithm: "ensemble", GroupFolds: true, Set: ensemble}, false},
		"ensemble, a file":   {d, protocol.Spec{Algorithm: "ensemble", Assigned: "x", Folds: 2, Set: ensemble}, false},
		"best":               {d, protocol.Spec{Algorithm: "ensemble", Set: map[string]string{"preset": "best"}}, false},
		"three groups":       {few, protocol.Spec{Algorithm: "ldlf"}, true},
		"ensemble, 3 groups": {few, protocol.Spec{Algorithm: "ensemble", Set: ensemble}, false},
		"ensemble, 2 left":   {few, protocol.Spec{Algorithm: "ensemble", GroupFolds: true, Set: ensemble}, false},
	} {
		t.Run(name, func(t *testing.T) {
			j := resolve(t, c.data, c.spec)
			data := *c.data
			if c.spec.GroupFolds {
				data.Assigned = data.Groups
			}
			parent, err := Open(j, &data)
			if err != nil {
				t.Fatal(err)
			}
			jobs := []*round.Job{j}
			if j.Folds > 0 {
				jobs = append(jobs[1:], pipeline.SubJob(j, 0), pipeline.SubJob(j, j.Folds-1))
			}
			for _, of := range jobs {
				if n := checkWhole(t, parent, of, &data); c.held != (n > 0) {
					t.Errorf("%d samples validate", n)
				}
				if j.Algorithm == "ensemble" || j.Screen {
					for unit := 0; ; unit++ {
						child, err := pipeline.SubJobOf(of, data.Manifest, unit)
						if err != nil {
							if unit < 2 {
								t.Fatal(err)
							}
							break
						}
						checkWhole(t, parent, child, &data)
					}
				}
			}
		})
	}
}

// checkWhole fails if a group has samples that train and others that validate, or that test an inner fold or a small
// model of the screening. It returns the number of samples that validate.
func checkWhole(t *testing.T, parent *open.Job, j *round.Job, d *Data) (validates int) {
	t.Helper()
	job, err := parent.SubJob(j)
	if err != nil {
		t.Fatal(err)
	}
	tests := j.Split.Inner > 0 || j.Split.Held.Fraction > 0
	of := make(map[uint16]dataset.Roles)
	for row, g := range d.Groups {
		switch role := job.Data.Role(uint32(row)); role {
		case dataset.Validation:
			validates++
			of[g] |= role
		case dataset.Train:
			of[g] |= role
		case dataset.Test:
			if tests {
				of[g] |= role
			}
		}
	}
	for g, roles := range of {
		if roles&(roles-1) != 0 {
			t.Errorf("%s, inner fold %d: group %d has the roles %b", j.Algorithm, j.Split.InnerFold, g, roles)
		}
	}
	return validates
}
