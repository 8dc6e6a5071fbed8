package coordinator_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestAuditNamesCallers: the records of a cluster have the name, the role and the address of each
// caller, also of requests that a follower forwards, and the refusals of all coordinators.
func TestAuditNamesCallers(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
	ctx := deadline(t)
	s := secure(t, 3)
	s.startAll(0)
	s.leader(ctx)
	users := map[string]*certs.Source{"sam": s.authority.User("sam", "submit"), "eve": s.authority.User("eve", "submit"),
		"rita": s.authority.User("rita", "read")}
	if _, err := s.clientOf(users["sam"]).Datasets().Import(ctx, protocol.DatasetPut{Name: "art"},
		generate.Artificial(600, 1), importer.Options{}); err != nil {
		t.Fatal(err)
	}
	job, err := s.clientOf(users["sam"]).Jobs().Submit(ctx, eventful())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(who string, i int, method, path string, status int) {
		t.Helper()
		s.answers(ctx, users[who], i, method, path, status)
	}
	for i := range s.peers {
		ask("", i, "GET", "/v1/jobs", 401)
		ask("rita", i, "POST", "/v1/jobs", 403)
		ask("rita", i, "POST", "/v1/jobs", 403)
		ask("eve", i, "POST", "/v1/jobs/"+job.Name+"/cancel", 403)
	}
	ask("sam", 0, "POST", "/v1/jobs/"+job.Name+"/pause", 200)
	ask("sam", 1, "POST", "/v1/jobs/"+job.Name+"/resume", 200)
	ask("sam", 2, "POST", "/v1/jobs/"+job.Name+"/cancel", 200)
	count := func(list []protocol.AuditRecord, caller, reason string) (n uint64) {
		for _, r := range list {
			if r.Caller == caller && strings.HasPrefix(r.Refused, reason+":") && r.From == "127.0.0.1" {
				n += r.Count
			}
		}
		return n
	}
	var list []protocol.AuditRecord
	testkit.Until(t, "the refusals of all coordinators", func() bool {
		if list, err = s.client.Audit(ctx, protocol.AuditQuery{}); err != nil {
			t.Fatal(err)
		}
		return count(list, "-", "identity") >= 3 && count(list, "rita", "role") >= 6 && count(list, "eve", "owner") >= 3
	})
	if a, b, c := count(list, "-", "identity"), count(list, "rita", "role"), count(list, "eve", "owner"); a != 3 ||
		b != 6 || c != 3 {
		t.Errorf("%d, %d and %d refusals: %+v", a, b, c, list)
	}
	var changes []string
	for _, r := range slices.Backward(list) {
		if r.Count == 0 {
			changes = append(changes, strings.Join([]string{r.Caller, r.Role, r.Request, r.About, r.Refused}, " "))
			if !strings.HasPrefix(r.From, "127.0.0.1:") || r.Serial != certs.Serial(users["sam"].Own()) {
				t.Errorf("%+v", r)
			}
		}
	}
	about := fmt.Sprintf("job %d (%s)", job.ID, job.Name)
	want := []string{"sam submit POST /v1/datasets dataset art ", "sam submit POST /v1/jobs " + about + " "}
	for _, what := range []string{"pause", "resume", "cancel"} {
		want = append(want, "sam submit POST /v1/jobs/"+job.Name+"/"+what+" "+about+" ")
	}
	if !slices.Equal(changes, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(changes, "\n"), strings.Join(want, "\n"))
	}
	if _, err := s.clientOf(users["sam"]).Audit(ctx, protocol.AuditQuery{}); err == nil ||
		!strings.Contains(err.Error(), "needs the role admin") {
		t.Errorf("a user who is no admin: %v", err)
	}
	s.restartAll(ctx)
	again, err := s.client.Audit(ctx, protocol.AuditQuery{})
	if err != nil || len(again) < len(list) {
		t.Errorf("after a restart there are %d records, want at least %d: %v", len(again), len(list), err)
	}
}

// restartAll stops all coordinators and starts them again.
func (s *secured) restartAll(ctx context.Context) {
	s.stopAll()
	for _, p := range s.peers {
		s.startCoordinator(p.ID)
	}
	s.leader(ctx)
}

// answers checks the status with which coordinator i answers a request with a certificate; nil: without one.
func (s *secured) answers(ctx context.Context, source *certs.Source, i int, method, path string, status int) {
	s.t.Helper()
	web := browser(s.t, "")
	if source != nil {
		web = browser(s.t, source.Dir())
	}
	testkit.Until(s.t, "an answer", func() bool {
		r, err := http.NewRequestWithContext(ctx, method, "https://"+s.port(i, 0)+path, nil)
		if err != nil {
			s.t.Fatal(err)
		}
		answer, err := web.Do(r)
		if err != nil {
			s.t.Fatal(err)
		}
		defer answer.Body.Close()
		b, err := io.ReadAll(answer.Body)
		if answer.StatusCode == http.StatusServiceUnavailable && status != answer.StatusCode {
			return false // no leader: an election on a busy machine
		}
		if answer.StatusCode != status || err != nil {
			s.t.Errorf("%s %s: %s %s, error %v", method, path, answer.Status, b, err)
		}
		return true
	})
}
