package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
			if len(j.Spec) > 0 || j.Job == nil || j.Job.Algorithm != "ldlf" || string(j.Job.Params) != "null" &&
				len(j.Job.Params) > 0 {
				t.Errorf("%s: %+v of %+v is not short", query, j.Job, j)
			}
		}
		if got := fmt.Sprintf("%s of %d", strings.Join(names, " "), list.Total); got != want || list.Jobs == nil {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	var pages []string
	for page, after := 0, uint64(0); page == 0 || after != 0; page++ {
		var list protocol.JobList
		query := "?sort=name&limit=2"
		if after != 0 {
			query += fmt.Sprintf("&after=%d", after)
		}
		s.get("GET", "/v1/jobs"+query, nil, &list)
		for _, j := range list.Jobs {
			pages = append(pages, j.Name)
		}
		if after = list.Next; list.Total != 3 || len(list.Jobs) > 2 {
			t.Errorf("%s: %d of %d jobs", query, len(list.Jobs), list.Total)
		}
	}
	if got := strings.Join(pages, " "); got != "a b c" {
		t.Errorf("the pages have the jobs %s", got)
	}
	var cancelled protocol.JobInfo
	s.get("GET", "/v1/jobs/a", nil, &cancelled)
	var rest protocol.JobList
	if s.get("GET", fmt.Sprintf("/v1/jobs?sort=name&state=queued&after=%d", cancelled.ID), nil,
		&rest); len(rest.Jobs) != 2 || rest.Next != 0 {
		t.Errorf("after a job that is not listed: %+v", rest)
	}
	s.refuse(404, "GET", "/v1/jobs?after=999", nil, "job 999", "from the first")
	for _, after := range []string{"0", "-1", "a"} {
		s.refuse(400, "GET", "/v1/jobs?after="+after, nil, "number of a job")
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

// many is a state of ended jobs with large results and errors.
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
		job := &round.Job{Algorithm: "ldlf", Numerics: 1, Seed: uint64(i), Dataset: m.Digest(), Params: params,
			Split: dataset.Split{Seed: 1}}
		apply(protocol.EntrySubmit, protocol.SubmitEntry{Token: fmt.Sprint("token", i), Name: fmt.Sprint("job-", i),
			Dataset: "art", Spec: params, Job: job, Time: 1})
		id := index
		apply(protocol.EntryJobState, protocol.JobStateEntry{Epoch: st.Epoch(), Job: id, State: protocol.Running, Time: 2})
		if i%10 == 9 {
			apply(protocol.EntryJobState, protocol.JobStateEntry{Epoch: st.Epoch(), Job: id, State: protocol.Failed,
				Error: strings.Repeat("é", 30_000), Time: 3})
			continue
		}
		model := protocol.ModelRef{Digest: blobs.Sum(nil), Blob: blobs.Sum(nil)}
		apply(protocol.EntryFinish, protocol.FinishEntry{
			Epoch: st.Epoch(), Job: id, Outcome: outcome(float64(i%997), i%3 > 0), Models: []protocol.ModelRef{model, model,
				model}, Time: 4,
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
	return fmt.Appendf(nil, `{"evaluated_on":%q,"measures":%s,"folds":[%s]}`, on, report,
		strings.Join(slices.Repeat([]string{fold}, 10), ","))
}

// listedBytes is how many bytes the answer to a query has.
func listedBytes(t testing.TB, v *jobView, st *state.State, q *protocol.JobQuery) int {
	t.Helper()
	chosen, total := choose(st.Jobs(), q)
	b, err := json.Marshal(v.describe(st, chosen, total, q.Full))
	if err != nil {
		t.Fatal(err)
	}
	return len(b)
}

// TestListBytes: a list takes a bounded number of bytes a job, however large results,
// settings and errors are, and one with a limit as many, however many jobs there are.
func TestListBytes(t *testing.T) {
	const perJob, jobs = 2 << 10, 400
	st, v := many(t, jobs), &jobView{running: idle}
	for _, sort := range []string{"", "kl", "-ended"} {
		if n := listedBytes(t, v, st, &protocol.JobQuery{Sort: sort}); n > jobs*perJob {
			t.Errorf("by %q: %d bytes for %d jobs", sort, n, jobs)
		}
		if n := listedBytes(t, v, st, &protocol.JobQuery{Sort: sort, Limit: 100}); n > 100*perJob {
			t.Errorf("by %q: %d bytes for 100 of %d jobs", sort, n, jobs)
		}
	}
	if n := listedBytes(t, v, st, &protocol.JobQuery{States: []protocol.JobState{protocol.Failed}, Full: true}); n < jobs/
		10*60_000 {
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
	st, v := many(b, 10_000), &jobView{running: idle}
	for b.Loop() {
		listedBytes(b, v, st, &protocol.JobQuery{Sort: "kl", Limit: 100})
	}
}

// TestChoose: whatever the order, what lacks the value is last, held-out rows come before
// training rows, equal ones the newest first, and a limit takes the first.
func TestChoose(t *testing.T) {
	st := many(t, 40)
	rapid.Check(t, func(t *rapid.T) {
		q := protocol.JobQuery{
			Sort: rapid.SampledFrom([]string{"", "-"}).Draw(t, "direction") + rapid.SampledFrom(protocol.JobOrders()).
				Draw(t, "order"),
			States: rapid.SliceOfNDistinct(rapid.SampledFrom(protocol.JobStates), 0, 6, rapid.ID[protocol.JobState]).
				Draw(t, "states"),
			Limit: rapid.IntRange(0, 50).Draw(t, "limit"),
		}
		all, total := choose(st.Jobs(), &protocol.JobQuery{Sort: q.Sort, States: q.States})
		some, again := choose(st.Jobs(), &q)
		if total != len(all) || again != total || q.Limit > 0 && len(some) != min(q.Limit, total) ||
			!slices.Equal(some, all[:len(some)]) {
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

// TestDeleteJobs checks that ended jobs are deleted together or not at all, and that
// deleting twice does no harm. A request about a deleted job is told that it was deleted.
func TestDeleteJobs(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	done, other, runs := s.submit("done"), s.submit("other"), s.submit("runs")
	s.finish(done, "a model")
	s.finish(other, "another")
	s.refuse(409, "POST", "/v1/jobs/delete", protocol.DeleteRequest{Jobs: []uint64{done.ID, runs.ID}}, "(runs) is queued",
		"nothing was deleted")
	s.refuse(404, "POST", "/v1/jobs/delete", protocol.DeleteRequest{Jobs: []uint64{done.ID, 99999}}, "no job 99999",
		"nothing was deleted")
	for _, n := range []int{0, protocol.MaxDelete + 1} {
		s.refuse(400, "POST", "/v1/jobs/delete", protocol.DeleteRequest{Jobs: make([]uint64, n)},
			"want 1 to 4096 jobs to delete in one request, got "+strconv.Itoa(n))
	}
	if n := len(s.cfg.Store.State().Jobs()); n != 3 {
		t.Fatalf("%d jobs are left", n)
	}
	var got protocol.Deletion
	s.get("POST", "/v1/jobs/delete", protocol.DeleteRequest{Jobs: []uint64{done.ID, done.ID}}, &got)
	want := protocol.Deletion{Jobs: []protocol.DeletedJob{{ID: done.ID, Name: "done", State: protocol.Done, Ended: 9,
		Bytes: uint64(len("a model"))}}, Frees: uint64(len("a model"))}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = protocol.Deletion{}
	s.get("POST", "/v1/jobs/delete", protocol.DeleteRequest{Jobs: []uint64{other.ID, done.ID}}, &got)
	if len(got.Jobs) != 2 || got.Jobs[0] != (protocol.DeletedJob{ID: done.ID, Name: "done", Before: true}) ||
		got.Jobs[1].Before {
		t.Errorf("deleted again: %+v", got)
	}
	says := fmt.Sprintf("job %d (done) was deleted", done.ID)
	for _, key := range []string{"done", strconv.FormatUint(done.ID, 10)} {
		s.refuse(404, "GET", "/v1/jobs/"+key, nil, says)
		s.refuse(404, "GET", "/v1/jobs/"+key+"/changes", nil, says)
		s.refuse(404, "POST", "/v1/jobs/"+key+"/cancel", nil, says)
		s.refuse(404, "DELETE", "/v1/models/"+key, nil, says)
	}
	s.refuse(404, "GET", "/v1/models/done", nil, says)
	s.refuse(409, "POST", "/v1/jobs", submission("of done", "done", nil), "this submission made "+
		says[:len(says)-len(" was deleted")], "was deleted")
	if anew := s.submit("runs"); anew.ID != runs.ID {
		t.Error("another job's submission is not known any more")
	}
	var again protocol.JobInfo
	s.get("POST", "/v1/jobs", submission("another token", "done", nil), &again)
	if again.ID <= runs.ID || again.State != protocol.Queued {
		t.Errorf("the name of a deleted job makes %+v", again)
	}
}

// TestWatchOfADeletedJob ends, and the next says why.
func TestWatchOfADeletedJob(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	j := s.submit("job")
	l := s.watch("job")
	l.next(protocol.Queued)
	s.get("POST", "/v1/jobs/job/cancel", nil, nil)
	s.get("POST", "/v1/jobs/delete", protocol.DeleteRequest{Jobs: []uint64{j.ID}}, nil)
	for range l.ch { // perhaps the last line, and the end
	}
	s.refuse(404, "GET", fmt.Sprintf("/v1/jobs/%d/changes", j.ID), nil, "(job) was deleted")
}

// TestPrune deletes what ended long enough ago, in more than one entry if need be; a dry
// run only says which.
func TestPrune(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	old, failed, young := s.submit("old"), s.submit("failed"), s.submit("young")
	s.submit("queued")
	s.finish(old, "a model") // ended in 1970
	epoch := s.cfg.Store.State().Epoch()
	s.propose(protocol.EntryJobState, protocol.JobStateEntry{Epoch: epoch, Job: failed.ID,
		State: protocol.Failed, Time: 10})
	s.get("POST", "/v1/jobs/young/cancel", nil, nil)
	prune := func(r protocol.PruneRequest) (ids []uint64) {
		t.Helper()
		var got protocol.Deletion
		s.get("POST", "/v1/jobs/prune", r, &got)
		if got.DryRun != r.DryRun || got.Jobs == nil {
			t.Errorf("%+v: %+v", r, got)
		}
		for _, j := range got.Jobs {
			ids = append(ids, j.ID)
		}
		return ids
	}
	const day = 24 * 60 * 60
	if got := prune(protocol.PruneRequest{OlderThan: day, DryRun: true}); !slices.Equal(got,
		[]uint64{old.ID, failed.ID}) || len(s.cfg.Store.State().Jobs()) != 4 {
		t.Errorf("a dry run: %v", got)
	}
	if got := prune(protocol.PruneRequest{OlderThan: day, States: []protocol.JobState{protocol.Failed,
		protocol.Cancelled}}); !slices.Equal(got, []uint64{failed.ID}) {
		t.Errorf("failed ones: %v", got)
	}
	if got := prune(protocol.PruneRequest{OlderThan: 1 << 60}); got != nil {
		t.Errorf("of before all times: %v", got)
	}
	if got := prune(protocol.PruneRequest{}); !slices.Equal(got, []uint64{old.ID, young.ID}) {
		t.Errorf("all that have ended: %v", got)
	}
	if jobs := s.cfg.Store.State().Jobs(); len(jobs) != 1 || jobs[0].Name != "queued" {
		t.Errorf("left: %v", jobs)
	}
	s.refuse(400, "POST", "/v1/jobs/prune", protocol.PruneRequest{OlderThan: -1}, "is negative")
	s.refuse(400, "POST", "/v1/jobs/prune", protocol.PruneRequest{States: []protocol.JobState{protocol.Running}},
		`"running"`, "want done, failed or cancelled")
	s.refuse(400, "POST", "/v1/jobs/prune", []byte(`{"older_than":"30d"}`), "older_than")
}

// TestDeletionFrees: what a deletion frees is what nothing else refers to, and a dry run
// says the same.
func TestDeletionFrees(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	shared, own := "a model of two jobs", "a model of one"
	one, two, three := s.submit("one"), s.submit("two"), s.submit("three")
	s.finish(one, shared)
	s.finish(two, shared)
	s.finish(three, own, shared)
	prune := func(dry bool) uint64 {
		t.Helper()
		var got protocol.Deletion
		s.get("POST", "/v1/jobs/prune", protocol.PruneRequest{DryRun: dry}, &got)
		return got.Frees
	}
	remove := func(ids ...uint64) uint64 {
		t.Helper()
		var got protocol.Deletion
		s.get("POST", "/v1/jobs/delete", protocol.DeleteRequest{Jobs: ids}, &got)
		return got.Frees
	}
	if got, want := prune(true), uint64(len(shared)+len(own)); got != want {
		t.Errorf("a dry run frees %d bytes, want %d", got, want)
	}
	if got := remove(one.ID); got != 0 {
		t.Errorf("one of the jobs that share a model frees %d bytes", got)
	}
	if got := remove(three.ID, one.ID); got != uint64(len(own)) {
		t.Errorf("a job with a model of its own frees %d bytes", got)
	}
	if got := prune(false); got != uint64(len(shared)) {
		t.Errorf("the last of the jobs that share a model frees %d bytes", got)
	}
	if got := prune(false); got != 0 {
		t.Errorf("nothing frees %d bytes", got)
	}
}

// TestPrunable is a matter of state and time of the end.
func TestPrunable(t *testing.T) {
	at := func(second int64) state.Status { return state.Status{Ended: second} }
	of := func(experiment string) state.Request { return state.Request{Experiment: experiment} }
	jobs := []*state.Job{
		{ID: 1, State: protocol.Done, Status: at(10)}, {ID: 2, State: protocol.Running}, {ID: 3, State: protocol.Failed,
			Status: at(11)}, {ID: 4, State: protocol.Cancelled, Status: at(10)},
		{ID: 5, State: protocol.Done, Status: at(9), Request: of("e")}, {ID: 6, State: protocol.Paused, Request: of("e")},
		{ID: 7, State: protocol.Done, Status: at(12), Request: of("f")},
	}
	for _, test := range []struct {
		until  int64
		states []protocol.JobState
		want   string
	}{
		{9, nil, "[]"}, {10, nil, "[1 4]"}, {11, nil, "[1 3 4]"}, {12, []protocol.JobState{protocol.Done}, "[1 7]"},
		{11, []protocol.JobState{protocol.Failed, protocol.Running}, "[3]"},
	} {
		ids := []uint64{}
		for _, j := range prunable(jobs, test.until, test.states) {
			ids = append(ids, j.ID)
		}
		if fmt.Sprint(ids) != test.want {
			t.Errorf("until %d, %v: %v, want %s", test.until, test.states, ids, test.want)
		}
	}
}

// TestDeleteModel: the job stays and says so; models of folds go together.
func TestDeleteModel(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	one := s.submit("one")
	s.finish(one, "the model")
	var folds protocol.JobInfo
	r := submission("folds", "cv", nil)
	r.Spec.Folds = 2
	s.get("POST", "/v1/jobs", r, &folds)
	s.finish(folds, "fold zero", "fold one")
	waits := s.submit("queued")
	s.refuse(400, "DELETE", "/v1/models/cv/1", nil, "the models of all folds are deleted together: name cv, because "+
		"cv/1 alone cannot be deleted")
	s.refuse(409, "DELETE", "/v1/models/queued", nil, "has not ended")
	s.get("POST", fmt.Sprintf("/v1/jobs/%d/cancel", waits.ID), nil, nil)
	s.refuse(409, "DELETE", "/v1/models/queued", nil, "has no model")
	s.refuse(404, "DELETE", "/v1/models/none", nil, `there is no job "none"`)
	var got protocol.JobInfo
	for _, key := range []string{"cv", strconv.FormatUint(folds.ID, 10)} {
		s.get("DELETE", "/v1/models/"+key, nil, &got)
		if got.ID != folds.ID || got.State != protocol.Done || got.ModelDeleted == 0 || len(got.Models) > 0 ||
			len(got.Outcome) == 0 {
			t.Errorf("deleted as %s: %+v", key, got)
		}
	}
	for _, name := range []string{"cv/0", "cv/1", "cv"} {
		s.refuse(404, "GET", "/v1/models/"+name, nil, fmt.Sprintf("the model of job %d (cv) was deleted", folds.ID))
	}
	var list []protocol.ModelInfo
	if s.get("GET", "/v1/models", nil, &list); len(list) != 1 || list[0].Name != "one" {
		t.Errorf("models: %+v", list)
	}
	s.get("POST", "/v1/jobs", r, &got) // the same submission is answered with the job
	if got.ID != folds.ID {
		t.Errorf("submitted again it makes job %d", got.ID)
	}
}
