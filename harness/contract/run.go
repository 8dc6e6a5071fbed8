// Package contract is the test that every algorithm passes: it holds an
// algorithms.Algorithm against its contract and that of package round. The test of an
// algorithm calls it in one line:
//
//	func TestContract(t *testing.T) { contract.Run(t, Algorithm{}) }
//
// It makes small datasets (dense, sparse, of one feature, of two labels; with labels that are a
// scale where numbers are predicted, and with weights where these are used) and derives jobs
// from the table of settings: all whole numbers at their least, all in the middle between
// that and the default, and from there each word, and each number at its ends. It knows
// nothing else of the algorithm. What it checks, and cannot check, each check says.
package contract

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/harness/testkit"
)

// Case is a job that the suite runs beside those that it derives, on every dataset. It
// trains in milliseconds.
type Case struct {
	Name string
	Set  param.Values
}

// Run fails t for everything that is wrong with an algorithm. With the race detector, which makes
// it ten times as slow, it only runs the checks in which lanes compute side by side.
func Run(t *testing.T, a algorithms.Algorithm, cases ...Case) {
	t.Helper()
	all, err := checks(a, cases)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if testkit.Race && !strings.HasSuffix(c.name, "/"+lanesCheck) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			if err := c.guarded(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// check is one test of the suite.
type check struct {
	name string
	run  func(context.Context) error
}

// guarded runs the check; a panic is an error with its stack.
func (c *check) guarded(ctx context.Context) (err error) {
	defer func() {
		if stack := engine.PanicStack(err); stack != "" {
			err = fmt.Errorf("%w\n%s", err, stack)
		}
	}()
	defer engine.Guard(&err, "the algorithm")
	return c.run(ctx)
}

// lanesCheck is the check in which lanes compute side by side.
const lanesCheck = "digest"

// whole are the checks of a job that is run to its end.
var whole = []struct {
	name string
	run  func(*job, context.Context) error
}{
	{"state", (*job).checkStates},
	{"units", (*job).checkTasks},
	{lanesCheck, (*job).checkDigest},
	{"memory", (*job).checkMemory},
	{"model", onModel(fitted.checkFile)},
	{"predictions", onModel(fitted.checkPredictions)},
	{"allocations", (*job).checkAllocations},
}

// checks lists the tests of an algorithm.
func checks(a algorithms.Algorithm, cases []Case) ([]check, error) {
	sets, err := problems(a)
	if err != nil {
		return nil, err
	}
	all := []check{{"settings", func(context.Context) error { return checkSettings(a, sets[0].manifest) }}}
	first, err := newTable(a, sets[0].manifest)
	if err != nil {
		return nil, err
	}
	tableOf := make(map[*problem]*table)
	for _, p := range sets {
		if tableOf[p] = first; p.manifest.HasWeights { // members of an ensemble follow from weights
			if tableOf[p], err = newTable(a, p.manifest); err != nil {
				return nil, err
			}
		}
	}
	add := func(name string, p *problem, v param.Values) {
		var model *algorithms.Model // checks after "memory" need not train again
		for _, c := range whole {
			all = append(all, check{name + "/" + p.name + "/" + c.name, func(ctx context.Context) error {
				j, err := newJob(a, p, v)
				if err != nil {
					return err
				}
				j.model = model
				err = c.run(j, ctx)
				model = j.model
				return err
			}})
		}
	}
	add("least", sets[0], first.least())
	for _, p := range sets {
		add("middle", p, tableOf[p].middle())
		for _, c := range cases {
			add(c.Name, p, c.Set)
		}
	}
	for i, v := range first.words() {
		p := sets[i%len(sets)]
		own := tableOf[p].words() // some words are not for weights
		if at := slices.IndexFunc(own, func(o variant) bool { return o.name == v.name }); at >= 0 {
			add(v.name, p, own[at].values)
		} else {
			add(v.name, sets[0], v.values)
		}
	}
	for i, v := range first.ends() {
		all = append(all, check{v.name, func(ctx context.Context) error {
			return checkEnd(ctx, a, sets[i%len(sets)], v.values)
		}})
	}
	return all, nil
}
