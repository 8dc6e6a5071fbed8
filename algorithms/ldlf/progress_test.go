package ldlf

import "testing"

// TestProgressTellsLosses: each validation with its step, the least of them, and how many
// steps there are at the most while training may end early.
func TestProgressTellsLosses(t *testing.T) {
	p := makeProblem(4, 300, 7, 3, 0.5)
	for name, want := range map[string]func(c *Config) uint64{
		"refit": func(c *Config) uint64 { return 2 * uint64(c.Steps) },
		"plain": func(*Config) uint64 { return 0 },
	} {
		c := variants()["refit"]
		if name == "plain" {
			c.Refit, c.Patience = false, c.Steps // it cannot end early
		}
		j := jobOf(c, 3)
		m, d := p.data(4, true, j.Split)
		tr, k := start(t, j, m)
		least, validations, before := 0.0, 0, uint64(0)
		drive(t, tr, k, d, 1, func(tr *trainer) {
			got := tr.Progress()
			if most := want(c); got.Refit == 0 && got.MostSteps != most || got.Refit > 0 && got.MostSteps != 0 {
				t.Fatalf("%s: %+v, want at most %d steps", name, got, most)
			}
			if got.ValidatedAt == before {
				return
			}
			before = got.ValidatedAt
			validations++
			if got.ValidatedAt != got.Step || got.Validation <= 0 {
				t.Fatalf("%s: a validation at step %d says %+v", name, got.Step, got)
			}
			if validations == 1 || got.Validation < least {
				least = got.Validation
			}
			if got.BestLoss != least {
				t.Fatalf("%s: the least loss is %v, not %v", name, least, got.BestLoss)
			}
		})
		if validations < 2 {
			t.Errorf("%s: %d validations", name, validations)
		}
	}
}

// TestRoundingIsNoLoss: a loss that rounding made negative is told as 0, and one that is not
// known yet as -1; the state keeps what was computed.
func TestRoundingIsNoLoss(t *testing.T) {
	j := jobOf(variants()["refit"], 3)
	m, _ := makeProblem(4, 300, 7, 3, 0.5).data(4, true, j.Split)
	tr, _ := start(t, j, m)
	if p := tr.Progress(); p.Loss != -1 {
		t.Errorf("before the first round the loss is %v", p.Loss)
	}
	const rounding = -2.5e-10
	tr.Samples, tr.Step, tr.Stopping.At = 9, 2, 2
	tr.Loss, tr.Stopping.Loss, tr.Stopping.Best.Any, tr.Stopping.Best.Loss = rounding, rounding, true, rounding
	if p := tr.Progress(); p.Loss != 0 || p.Validation != 0 || p.BestLoss != 0 {
		t.Errorf("losses of %v are told as %+v", rounding, p)
	}
	if tr.Loss != rounding || tr.Stopping.Loss != rounding || tr.Stopping.Best.Loss != rounding {
		t.Error("the state is another")
	}
}
