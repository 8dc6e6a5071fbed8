package contract

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/harness/testkit"
)

// TestSound: the algorithm that the broken twins are made of passes.
func TestSound(t *testing.T) { Run(t, tiny{}) }

// TestBrokenTwins: each planted fault is found, by the check whose business it is. The race detector finds
// some faults before the checks do, and it allocates.
func TestBrokenTwins(t *testing.T) {
	testkit.WithoutRace(t)
	for fault, check := range map[string]string{
		"takes any number":                       "settings",
		"takes any name":                         "settings",
		"does not name the setting":              "settings",
		"resolves to something else":             "settings",
		"forgets its velocity":                   "state",
		"forgets its rows":                       "state",
		"forgets a counter":                      "state",
		"keeps the caller's bytes":               "state",
		"takes a state with more behind it":      "state",
		"is changed by AppendState":              "state",
		"depends on how long it lives":           "state",
		"gives two values one version":           "state",
		"asks for a unit too many":               "state",
		"gives derived values old versions":      "state",
		"sums to nothing known":                  "state",
		"writes to the values":                   "state",
		"panics":                                 "state",
		"never ends":                             "state",
		"computes otherwise with idle lanes":     "units",
		"counts its calls":                       "units",
		"leaves something in its scratch memory": "units",
		"collects by the order of its calls":     "units",
		"reads another unit's shard":             "units",
		"writes to the rows":                     "units",
		"derives from what changes":              "units",
		"trains on test rows":                    "digest",
		"allocates":                              "allocations",
		"loses a tensor":                         "model",
		"accepts a model without a tensor":       "model",
		"misstates its shape":                    "model",
		"predicts by the size of the batch":      "predictions",
		"predicts by the row before":             "predictions",
		"predicts by the label":                  "predictions",
		"predicts no distribution":               "predictions",
		"predicts with new memory":               "allocations",
		"estimates too small a state":            "memory",
		"estimates too small a node":             "memory",
		"estimates too small a model":            "memory",
	} {
		t.Run(fault, func(t *testing.T) {
			err := failures(t.Context(), tiny{fault})
			if err == nil {
				t.Fatal("the suite passes it")
			}
			found := false
			for line := range strings.Lines(err.Error()) {
				name, _, _ := strings.Cut(line, ":")
				found = found || name == check || strings.HasSuffix(name, "/"+check)
			}
			if !found {
				t.Errorf("%s finds nothing; the suite says %.300s", check, err)
			}
			t.Logf("%.200s", err)
		})
	}
}

// failures returns the errors that Run reports, joined; nil: the algorithm passes.
func failures(ctx context.Context, a algorithms.Algorithm, cases ...Case) error {
	all, err := checks(a, cases)
	for _, c := range all {
		if e := c.guarded(ctx); e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", c.name, e))
		}
	}
	return err
}
