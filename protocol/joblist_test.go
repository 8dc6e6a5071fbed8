package protocol

import (
	"net/url"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// What a client asks for is what a coordinator reads.
func TestJobQueryRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := JobQuery{
			States: rapid.SliceOfNDistinct(rapid.SampledFrom(JobStates), 0, 6, rapid.ID[JobState]).Draw(t, "states"),
			Sort:   rapid.SampledFrom([]string{"", "-"}).Draw(t, "direction") + rapid.SampledFrom(JobOrders()).Draw(t, "order"),
			Limit:  rapid.IntRange(0, 1<<30).Draw(t, "limit"), After: rapid.Uint64().Draw(t, "after"), Full: rapid.Bool().
				Draw(t, "full"),
		}
		if len(q.States) == 0 {
			q.States = nil
		}
		v, err := url.ParseQuery(WriteQuery(q.Params()))
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseJobQuery(v)
		if err != nil || !reflect.DeepEqual(got, q) {
			t.Fatalf("%+v is read as %+v, %v", q, got, err)
		}
	})
}

// A query that no list answers says what would be right.
func TestBadJobQueries(t *testing.T) {
	for query, says := range map[string]string{
		"state=ended":          "want queued, paused, running, done, failed, cancelled",
		"state=done,finished":  `"finished"`,
		"sort=loss":            "submitted, ended",
		"sort=--kl":            `"--kl"`,
		"limit=-1":             "0 means all",
		"limit=many":           "number of jobs",
		"after=x":              "number of a job",
		"limit=5&limit=6":      "2 times",
		"full=maybe":           "true or false",
		"offset=5":             "state, sort, limit, after, experiment, owner, mine, name, algorithm, dataset, since, until, full",
		"state=done&sort=-age": `"-age"`,
	} {
		v, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseJobQuery(v); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: error %v, which does not say %q", query, err, says)
		}
	}
	q, err := ParseJobQuery(url.Values{"state": {" done,,failed, done "}})
	if key, descending := q.Order(); err != nil || !reflect.DeepEqual(q.States, []JobState{Done, Failed}) ||
		key != "submitted" || !descending {
		t.Errorf("%+v by %s, %v: %v", q, key, descending, err)
	}
}

// FuzzJobQuery: a query of a list is refused, or means the same when it is written again.
func FuzzJobQuery(f *testing.F) {
	for _, s := range []string{"", "state=done,failed&sort=-kl&limit=5", "full=1", "limit=00", "sort=-", "state=,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		var q JobQuery
		if n := allocated(func() { q, err = ParseJobQuery(v) }); n > perByte*uint64(len(text))+atLeast {
			t.Fatalf("%d bytes were allocated for %d", n, len(text))
		}
		if err != nil {
			return
		}
		if v, err = url.ParseQuery(WriteQuery(q.Params())); err != nil {
			t.Fatal(err)
		}
		if again, err := ParseJobQuery(v); err != nil || !reflect.DeepEqual(again, q) {
			t.Fatalf("%q is %+v, and that is %+v, %v", text, q, again, err)
		}
	})
}
