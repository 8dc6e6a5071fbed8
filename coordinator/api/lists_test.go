package api

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/protocol"
)

// TestListsInParts: a list in parts of any size has the elements of the whole list in its order, and the header Link
// leads from part to part.
func TestListsInParts(t *testing.T) {
	s := newSite(t)
	for i, name := range []string{"one", "two", "three", "four"} {
		s.put(name, 40+i)
	}
	names := func(query string) (list []string, link string) {
		t.Helper()
		answer := s.ask("GET", "/v1/datasets"+query, nil)
		defer answer.Body.Close()
		var sets []protocol.Dataset
		if err := json.NewDecoder(answer.Body).Decode(&sets); err != nil {
			t.Fatal(err)
		}
		for _, d := range sets {
			list = append(list, d.Name)
		}
		return list, answer.Header.Get("Link")
	}
	for query, want := range map[string]string{
		"": "four one three two", "?sort=-name": "two three one four", "?sort=samples": "one two three four",
		"?sort=-samples": "four three two one", "?name=t*": "three two", "?name=*o*": "four one two", "?name=one": "one",
		"?name=on": "", "?owner=sam": "", "?until=1": "", "?since=1": "four one three two", "?limit=2": "four one",
		"?after=one": "three two", "?after=one&name=four": "", "?sort=-samples&after=three&limit=1": "two",
	} {
		if got, _ := names(query); strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
	}
	for _, sort := range []string{"name", "-name", "samples", "-samples", "time"} {
		whole, link := names("?sort=" + sort)
		if link != "" {
			t.Errorf("the whole list leads to %s", link)
		}
		for _, limit := range []string{"1", "2", "3", "4"} {
			var got []string
			for next := "?limit=" + limit + "&sort=" + sort; next != ""; {
				part, link := names(next)
				got = append(got, part...)
				next, _, _ = strings.Cut(strings.TrimPrefix(link, "<"), ">")
			}
			if !slices.Equal(got, whole) {
				t.Errorf("sort %s in parts of %s: %v, want %v", sort, limit, got, whole)
			}
		}
	}
	for query, says := range map[string]string{"limit=-1": "limit: want a number of elements", "limit=x": "limit: want",
		"sort=age": "sort: want name, time, samples", "since=3&until=2": "until: 2 is before since, 3",
		"since=-1": "since: want a time in Unix seconds, at least 0", "offset=2": "unknown parameter"} {
		s.refuse(400, "GET", "/v1/datasets?"+query, nil, says)
	}
	s.refuse(404, "GET", "/v1/datasets?after=five", nil, "after")
}

// TestListsOfJobsAndExperiments: the filters and parts of jobs and experiments.
func TestListsOfJobsAndExperiments(t *testing.T) {
	s := newSite(t)
	s.put("set", 40)
	s.put("other", 41)
	for i, job := range []struct{ name, algorithm, dataset string }{
		{"a1", "aa-knn", "set"}, {"b1", "sa-bfgs", "set"}, {"a2", "aa-knn", "other"},
	} {
		s.get("POST", "/v1/jobs", protocol.SubmitRequest{Token: string(rune('a' + i)),
			Spec: protocol.Spec{Algorithm: job.algorithm, Dataset: job.dataset, Name: job.name}}, nil)
	}
	for query, want := range map[string]string{"name=a*": "a2 a1", "algorithm=aa-knn&dataset=set": "a1", "until=1": "",
		"dataset=set": "b1 a1", "state=queued&state=done&name=*1": "b1 a1"} {
		var list protocol.JobList
		s.get("GET", "/v1/jobs?"+query, nil, &list)
		var got []string
		for i := range list.Jobs {
			got = append(got, list.Jobs[i].Name)
		}
		if strings.Join(got, " ") != want || list.Total != len(got) {
			t.Errorf("%s: %v of %d, want %s", query, got, list.Total, want)
		}
	}
	s.get("POST", "/v1/jobs/a2/pause", nil, nil)
	for query, want := range map[string]map[protocol.JobState]int{"limit=1": {"queued": 2, "paused": 1},
		"state=paused": {"queued": 2, "paused": 1}, "dataset=other": {"paused": 1}, "state=done&name=b*": {"queued": 1},
		"owner=ana": nil} {
		var list protocol.JobList
		if s.get("GET", "/v1/jobs?"+query, nil, &list); !maps.Equal(list.States, want) {
			t.Errorf("%s: %v, want %v", query, list.States, want)
		}
	}
	for _, name := range []string{"x", "y", "z"} {
		s.get("POST", "/v1/experiments", protocol.ExperimentRequest{Token: "token " + name,
			Spec: "name: " + name + "\ndatasets: [{dataset: set}]\nfolds: 2\nmethods: [aa-knn]\n"}, nil)
	}
	for query, want := range map[string]string{"": "z y x", "sort=name": "x y z", "sort=-name&limit=2": "z y",
		"after=y": "x", "state=done": "", "state=queued,running&sort=newest": "x y z", "name=y": "y"} {
		var list protocol.ExperimentList
		s.get("GET", "/v1/experiments?"+query, nil, &list)
		var got []string
		for i := range list.Experiments {
			got = append(got, list.Experiments[i].Name)
		}
		if strings.Join(got, " ") != want || list.Next != map[string]string{"sort=-name&limit=2": "y"}[query] {
			t.Errorf("%s: %v, next %q, want %s", query, got, list.Next, want)
		}
	}
	v := url.Values{"name": {"*"}}
	s.refuse(404, "GET", "/v1/experiments?after=nobody&"+v.Encode(), nil, "after")
}
