package client

import (
	"net/http"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/protocol"
)

// A coordinator is removed only if the list of members says so, whatever a "not found" is
// about.
func TestRemovedMeansNotInTheList(t *testing.T) {
	for name, test := range map[string]struct {
		stays  bool // in the list
		status int
		says   string
	}{
		"removed":                {false, http.StatusOK, ""},
		"the answer was lost":    {false, http.StatusNotFound, ""},
		"nothing has that route": {true, http.StatusNotFound, "nothing at"},
		"removed, and it stays":  {true, http.StatusOK, "is still listed as a member"},
	} {
		deleted := false
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			list := protocol.Members{Members: []protocol.Member{{MemberEntry: protocol.MemberEntry{ID: "a"}}}}
			if test.stays || !deleted {
				list.Members = append(list.Members, protocol.Member{MemberEntry: protocol.MemberEntry{ID: "c/d"}})
			}
			if r.Method == http.MethodDelete {
				if r.URL.EscapedPath() != "/v1/members/c%2Fd" {
					t.Errorf("%s: it asks for %s", name, r.URL.EscapedPath())
				}
				deleted = true
				if list.Members = list.Members[:1]; test.stays {
					list.Members = append(list.Members, protocol.Member{MemberEntry: protocol.MemberEntry{ID: "c/d"}})
				}
				if test.status != http.StatusOK {
					answer(w, test.status, protocol.Problem{Error: "there is nothing at DELETE"})
					return
				}
			}
			answer(w, http.StatusOK, list)
		})
		m, err := connect(t, s.URL).RemoveMember(t.Context(), "c/d")
		if test.says == "" && (err != nil || has(m, "c/d")) || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

// What is not found is deleted, or trusted, only if another look says so.
func TestNotFoundIsLookedAtAgain(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet:
			answer(w, http.StatusNotFound, protocol.Problem{Error: "there is nothing here"})
		case r.URL.Path == "/v1/cluster":
			answer(w, http.StatusOK, protocol.Cluster{Distrusted: []protocol.Distrusted{{Worker: "w1"}}})
		default:
			answer(w, http.StatusOK, protocol.Dataset{Name: "set"})
		}
	})
	c := connect(t, s.URL)
	if err := c.DeleteDataset(t.Context(), "set"); !IsNotFound(err) {
		t.Errorf("a dataset that stays: %v", err)
	}
	if err := c.Trust(t.Context(), "w1"); !IsNotFound(err) {
		t.Errorf("a worker that stays distrusted: %v", err)
	}
}
