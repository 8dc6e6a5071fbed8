package ensemble_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// sized describes a dataset of a size; nothing else decides the members of preset best.
func sized(rows, features, labels int) *dataset.Manifest {
	return &dataset.Manifest{Format: 1, Rows: rows, Features: features, Labels: labels,
		NonZeros: int64(rows) * int64(features), Shards: make([]dataset.ShardRef, 1)}
}

// TestBudget: candidates are taken in their order while they fit, and the work does not depend on the machine. What is
// wrong with a budget is said with a budget that works.
func TestBudget(t *testing.T) {
	a, err := registry.Find("ensemble")
	if err != nil {
		t.Fatal(err)
	}
	members := func(m *dataset.Manifest, budget float64) (names []string, folds string) {
		t.Helper()
		r, err := a.Resolve(param.Values{"preset": "best", "budget": budget}, m)
		if err != nil {
			t.Fatal(err)
		}
		set := struct {
			Members, Weights string
			Inner            int `json:"inner_folds"`
			Validated        int `json:"validated_folds"`
		}{Validated: 1}
		if err := json.Unmarshal(r.Params, &set); err != nil {
			t.Fatal(err)
		}
		items, err := param.ParseItems(set.Members)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range items {
			names = append(names, item.Name)
		}
		if strings.Contains(string(r.Params), "budget") {
			t.Error("the budget is part of the job, which has the members")
		}
		return names, fmt.Sprintf("%s %d/%d", set.Weights, set.Validated, set.Inner)
	}
	all := "structrf sa-bfgs ldlf dldl aa-bp aoso-ldlogitboost ldsvr df-ldl ldlogitboost aa-knn"
	for _, c := range []struct {
		rows, features, labels int
		budget                 float64
		names, folds           string
	}{
		{60, 50, 5, 500, all, "validated 5/5"},
		{300, 50, 5, 500, all, "validated 10/10"},
		{2000, 50, 10, 500, all, "validated 8/10"},
		{2000, 50, 10, 3, "structrf sa-bfgs ldsvr aa-knn", "validated 1/5"},
		{50_000, 50, 10, 500, "structrf sa-bfgs ldlf dldl aa-bp aoso-ldlogitboost ldsvr", "validated 1/5"},
		{2000, 50, 300, 500, "structrf sa-bfgs ldlf dldl aa-bp aoso-ldlogitboost ldsvr aa-knn", "validated 2/10"},
	} {
		names, folds := members(sized(c.rows, c.features, c.labels), c.budget)
		if got := strings.Join(names, " "); got != c.names || folds != c.folds {
			t.Errorf("%d samples, budget %v: %s by %s, want %s by %s", c.rows, c.budget, got, folds, c.names, c.folds)
		}
	}
	for _, wrong := range []struct {
		name string
		set  param.Values
	}{
		{"budget", param.Values{"preset": "best", "budget": 0.001}},
		{"budget", param.Values{"budget": 400.0}},
		{"budget", param.Values{"preset": "paper", "budget": 400.0}},
		{"budget", param.Values{"preset": "best", "budget": 400.0, "members": "structrf,ldlf"}},
		{"validated_folds", param.Values{"preset": "best", "inner_folds": int64(4), "validated_folds": int64(5)}},
		{"validated_folds", param.Values{"validated_folds": int64(2)}},
	} {
		_, err := a.Resolve(wrong.set, sized(2000, 50, 10))
		if err == nil || !strings.HasPrefix(err.Error(), wrong.name+": ") {
			t.Errorf("%v: error %v", wrong.set, err)
		}
	}
	if got, _ := members(sized(2000, 50, 10), 2); len(got) < 2 {
		t.Errorf("members %v", got)
	}
	// Budgets below a billion, and a first candidate that leaves no room for another.
	if got, _ := members(sized(60, 4, 3), 0.2); len(got) < 2 {
		t.Errorf("members %v", got)
	}
	for budget := 1.0; budget < 1000; budget *= 1.3 {
		m := sized(100_000, 20, 100)
		_, err := a.Resolve(param.Values{"preset": "best", "budget": budget}, m)
		if err == nil {
			if got, _ := members(m, budget); len(got) < 2 || strings.Join(got, " ") == "structrf ldlf ldlboost" {
				t.Errorf("budget %v: members %v", budget, got)
			}
		}
		var least float64
		if err != nil {
			if _, scan := fmt.Sscanf(err.Error()[strings.LastIndex(err.Error(), "takes ")+6:], "%g", &least); scan != nil {
				t.Fatal(err, scan)
			}
			if _, again := a.Resolve(param.Values{"preset": "best", "budget": least}, m); again != nil || least <= budget {
				t.Errorf("budget %v is said to be the least: error %v", least, again)
			}
		}
	}
}

// TestAlgorithmBest: algorithm best is the ensemble with preset best, and is as good as the best candidate alone.
func TestAlgorithmBest(t *testing.T) {
	m, shards := datatest.Build(t, generate.Artificial(200, 1))
	data := &local.Data{Manifest: m, Shards: shards}
	var digests []string
	for _, s := range []protocol.Spec{
		{Algorithm: "best", Set: map[string]string{"budget": "1"}},
		{Algorithm: "ensemble", Set: map[string]string{"preset": "best", "budget": "1"}},
	} {
		s.TestFraction = 0.2
		j, err := spec.Resolve(s, m)
		if err != nil {
			t.Fatal(err)
		}
		o, err := local.Run(t.Context(), j, data, local.Options{Lanes: 2})
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, o.ModelDigest)
		for _, share := range o.Mixture.Members {
			if share.Weight != 1 {
				continue
			}
			alone, err := spec.Resolve(protocol.Spec{Algorithm: share.Member, TestFraction: 0.2}, m)
			if err != nil {
				t.Fatal(err)
			}
			if own, err := local.Run(t.Context(), alone, data, local.Options{Lanes: 2}); err != nil ||
				own.Measures != o.Measures {
				t.Errorf("%s alone: error %v, measures %v, want %v", share.Member, err, own.Measures, o.Measures)
			}
		}
	}
	if digests[0] != digests[1] {
		t.Errorf("digests %v", digests)
	}
	_, err := spec.Resolve(protocol.Spec{Algorithm: "best", Set: map[string]string{"preset": "paper"}}, m)
	if err == nil || !strings.HasPrefix(err.Error(), "preset: ") {
		t.Errorf("another preset: error %v", err)
	}
}
