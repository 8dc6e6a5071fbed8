package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestJobList: states, order and limit are the coordinator's to apply.
func TestJobList(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	for _, name := range []string{"b", "a", "c"} {
		s.submit(name)
	}
	s.get("POST", "/v1/jobs/a/cancel", nil, nil)
	for query, want := range map[string]string{
		"":                                "c a b of 3",
		"?sort=submitted":                 "b a c of 3",
		"?sort=name":                      "a b c of 3",
		"?sort=-name&limit=2":             "c b of 3",
		"?state=queued&limit=1":           "c of 2",
		"?state=done,failed":              " of 0",
		"?sort=ended":                     "a c b of 3",
		"?sort=kl&state=cancelled,queued": "c a b of 3",
	} {
		var list protocol.JobList
		s.get("GET", "/v1/jobs"+query, nil, &list)
		var names []string
		for _, j := range list.Jobs {
			names = append(names, j.Name)
			if len(j.Spec) > 0 || j.Job == nil || j.Job.Algorithm != "ldlf" || string(j.Job.Params) != "null" && len(j.Job.Params) > 0 {
				t.Errorf("%s: %+v of %+v is not short", query, j.Job, j)
			}
		}
		if got := fmt.Sprintf("%s of %d", strings.Join(names, " "), list.Total); got != want || list.Jobs == nil {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	var full protocol.JobList
	s.get("GET", "/v1/jobs?full=true&limit=1", nil, &full)
	if len(full.Jobs[0].Spec) == 0 || len(full.Jobs[0].Job.Params) < 10 {
		t.Errorf("in full: %+v", full.Jobs[0])
	}
	s.refuse(400, "GET", "/v1/jobs?state=ended", nil, "queued, paused, running")
	s.refuse(400, "GET", "/v1/jobs?sort=loss", nil, "canberra")
	s.refuse(400, "GET", "/v1/jobs?page=2", nil, `"page"`)
}

// many is a state of ended jobs whose results and errors are large.
func many(t testing.TB, n int) *state.State {
	t.Helper()
	m, _ := imported(t, 200)
	st, index := state.New(), uint64(0)
	apply := func(kind protocol.EntryKind, body any) {
		index++
		var r state.Result
		if st, r = st.Apply(index, protocol.EncodeEntry(kind, body)); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	apply(protocol.EntryLead, protocol.LeadEntry{Node: "a"})
	apply(protocol.EntryDatasetPut, protocol.DatasetPutEntry{Name: "art", Manifest: m})
	params := json.RawMessage(`{"note":"` + strings.Repeat("p", 2000) + `"}`)
	for i := range n {
		job := &round.Job{Algorithm: "ldlf", Numerics: 1, Seed: uint64(i), Dataset: m.Digest(), Params: params, Split: dataset.Split{Seed: 1}}
		apply(protocol.EntrySubmit, protocol.SubmitEntry{Token: fmt.Sprint("token", i), Name: fmt.Sprint("job-", i), Dataset: "art", Spec: params, Job: job, Time: 1})
		id := index
		apply(protocol.EntryJobState, protocol.JobStateEntry{Epoch: st.Epoch(), Job: id, State: protocol.Running, Time: 2})
		if i%10 == 9 {
			apply(protocol.EntryJobState, protocol.JobStateEntry{Epoch: st.Epoch(), Job: id, State: protocol.Failed, Error: strings.Repeat("é", 30_000), Time: 3})
			continue
		}
		model := protocol.ModelRef{Digest: blobs.Sum(nil), Blob: blobs.Sum(nil)}
		apply(protocol.EntryFinish, protocol.FinishEntry{
			Epoch: st.Epoch(), Job: id, Outcome: outcome(float64(i%997), i%3 > 0), Models: []protocol.ModelRef{model, model, model}, Time: 4,
		})
	}
	return st
}

// outcome is one as a job of ten folds has it.
func outcome(kl float64, held bool) json.RawMessage {
	on := "training samples"
	if held {
		on = "test samples"
	}
	var r measures.Report
	r[0].Mean = kl
	report, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	fold := fmt.Sprintf(`{"measures":%s,"mean_baseline":%s}`, report, report)
	return fmt.Appendf(nil, `{"evaluated_on":%q,"measures":%s,"folds":[%s]}`, on, report, strings.Join(slices.Repeat([]string{fold}, 10), ","))
}

// listedBytes is how many bytes the answer to a query has.
func listedBytes(t testing.TB, s *Server, st *state.State, q *protocol.JobQuery) int {
	t.Helper()
	chosen, total := choose(st.Jobs(), q)
	b, err := json.Marshal(s.list(st, chosen, total, q.Full))
	if err != nil {
		t.Fatal(err)
	}
	return len(b)
}

// TestListBytes: a list takes a bounded number of bytes a job, however large results,
// settings and errors are, and one with a limit as many, however many jobs there are.
func TestListBytes(t *testing.T) {
	const perJob, jobs = 2 << 10, 400
	st, s := many(t, jobs), &Server{}
	for _, sort := range []string{"", "kl", "-ended"} {
		if n := listedBytes(t, s, st, &protocol.JobQuery{Sort: sort}); n > jobs*perJob {
			t.Errorf("by %q: %d bytes for %d jobs", sort, n, jobs)
		}
		if n := listedBytes(t, s, st, &protocol.JobQuery{Sort: sort, Limit: 100}); n > 100*perJob {
			t.Errorf("by %q: %d bytes for 100 of %d jobs", sort, n, jobs)
		}
	}
	if n := listedBytes(t, s, st, &protocol.JobQuery{States: []protocol.JobState{protocol.Failed}, Full: true}); n < jobs/10*60_000 {
		t.Errorf("in full: %d bytes", n)
	}
}

// TestListedWaits: for what a job waits may name many workers; a list says the beginning.
func TestListedWaits(t *testing.T) {
	long := strings.Repeat("é", 30_000)
	info := protocol.JobInfo{Waiting: long, Error: long, Suspect: long}
	abridge(&info)
	if b, err := json.Marshal(info); err != nil || len(b) > 2<<10 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// BenchmarkList lists 100 of 10,000 ended jobs by a measure.
func BenchmarkList(b *testing.B) {
	st, s := many(b, 10_000), &Server{}
	for b.Loop() {
		listedBytes(b, s, st, &protocol.JobQuery{Sort: "kl", Limit: 100})
	}
}

// TestChoose: whatever the order, what lacks the value is last, held-out rows come
// before training rows, equal ones the newest first, and a limit takes the first.
func TestChoose(t *testing.T) {
	st := many(t, 40)
	rapid.Check(t, func(t *rapid.T) {
		q := protocol.JobQuery{
			Sort:   rapid.SampledFrom([]string{"", "-"}).Draw(t, "direction") + rapid.SampledFrom(protocol.JobOrders()).Draw(t, "order"),
			States: rapid.SliceOfNDistinct(rapid.SampledFrom(protocol.JobStates), 0, 6, rapid.ID[protocol.JobState]).Draw(t, "states"),
			Limit:  rapid.IntRange(0, 50).Draw(t, "limit"),
		}
		all, total := choose(st.Jobs(), &protocol.JobQuery{Sort: q.Sort, States: q.States})
		some, again := choose(st.Jobs(), &q)
		if total != len(all) || again != total || q.Limit > 0 && len(some) != min(q.Limit, total) || !slices.Equal(some, all[:len(some)]) {
			t.Fatalf("%+v: %d of %d, %d of %d", q, len(some), again, len(all), total)
		}
		key, descending := q.Order()
		for i := 1; i < len(all); i++ {
			a, b := rankOf(all[i-1], key), rankOf(all[i], key)
			right := a.number < b.number || a.text < b.text
			if descending {
				right = a.number > b.number || a.text > b.text
			}
			equal := a.number == b.number && a.text == b.text && all[i-1].ID > all[i].ID
			if a.class > b.class || a.class == b.class && !right && !equal {
				t.Fatalf("%s: %v (%+v) comes before %v (%+v)", q.Sort, all[i-1], a, all[i], b)
			}
		}
	})
	best, _ := choose(st.Jobs(), &protocol.JobQuery{Sort: "kl"})
	if v, held, ok := best[0].Measure("kl"); v != 1 || !held || !ok || best[len(best)-1].State != protocol.Failed {
		t.Errorf("the best is %v with %v, the last %v", best[0], v, best[len(best)-1].State)
	}
}
