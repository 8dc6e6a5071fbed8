package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit/certtest"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// audit returns what the records say, the oldest first: request, what it is about, and the refusal.
func (s *site) audit(query string) (list []string) {
	s.t.Helper()
	var records []protocol.AuditRecord
	s.get("GET", "/v1/audit"+query, nil, &records)
	for _, r := range records {
		if r.Caller != protocol.NoCaller || r.Role != "admin" || !strings.HasPrefix(r.From, "127.0.0.1:") ||
			time.Since(time.Unix(r.Time, 0)) > time.Hour || (r.Count > 0) != (r.Refused != "") {
			s.t.Errorf("%+v", r)
		}
		list = append([]string{strings.Trim(r.Request+": "+r.About+": "+r.Refused, ": ")}, list...)
	}
	return list
}

// TestAudit: each change of users has a record, whether it is an entry or not, and whether it is
// refused or not. Reading has none, except for backups.
func TestAudit(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	j := s.submit("job")
	s.get("GET", "/v1/jobs", nil, nil)
	s.refuse(409, "DELETE", "/v1/datasets/art", nil, "in use")
	s.get("POST", "/v1/jobs/job/pause", nil, nil)
	s.get("POST", "/v1/jobs/job/resume", nil, nil)
	s.get("POST", "/v1/jobs/job/cancel", nil, nil)
	s.get("POST", "/v1/jobs/delete", protocol.DeleteRequest{Jobs: []uint64{j.ID}}, nil)
	s.get("DELETE", "/v1/datasets/art", nil, nil)
	s.refuse(404, "POST", "/v1/workers/w1/trust", nil, "w1")
	s.get("GET", "/v1/backup", nil, new([]byte))
	s.refuse(400, "POST", "/v1/revocations", protocol.Revocation{Serial: "1f", Identity: "coppice://test/worker/w1"},
		"uses no TLS", "--tls-dir")
	job := fmt.Sprintf("job %d (job)", j.ID)
	want := []string{
		"POST /v1/datasets: dataset art", "POST /v1/jobs: " + job,
		fmt.Sprintf(`DELETE /v1/datasets/art: dataset art: dataset "art" is in use by %s`, job),
		"POST /v1/jobs/job/pause: " + job, "POST /v1/jobs/job/resume: " + job, "POST /v1/jobs/job/cancel: " + job,
		fmt.Sprintf("POST /v1/jobs/delete: jobs %d", j.ID), "DELETE /v1/datasets/art: dataset art",
		`POST /v1/workers/w1/trust: worker w1: quarantined worker "w1": not found`,
		"GET /v1/backup: all data",
	}
	got := s.audit("")
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for query, n := range map[string]int{"?limit=2": 2, "?limit=0": 0, "?refused=true": 2, "?caller=ana": 0,
		"?caller=-": len(want), "?since=1": len(want), "?since=99999999999": 0} {
		if got := s.audit(query); len(got) != n {
			t.Errorf("%s: %d records, want %d", query, len(got), n)
		}
	}
	for _, query := range []string{"?limit=x", "?limit=10001", "?limit=-1", "?since=1.5", "?refused=perhaps"} {
		s.refuse(400, "GET", "/v1/audit"+query, nil, "want")
	}
}

// TestRevocations: a certificate is named by its serial number, and nobody revokes the own one.
func TestRevocations(t *testing.T) {
	s := newSite(t)
	s.cfg.TLS = certtest.New(t).Source(certs.Coordinator, "a")
	handler := Handler(s.cfg)
	revoke := func(body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "/v1/revocations", strings.NewReader(body))
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r.WithContext(access.With(r.Context(), access.Caller{Role: rights.Admin, Name: "ana",
			Serial: "2e"})))
		return w
	}
	for body, want := range map[string]int{
		`{"serial":"","time":0}`: 400, `{"serial":"0","time":0}`: 400, `{"serial":"1F","time":0}`: 400,
		`{"serial":"1f","identity":"me","time":0}`: 400, `{"serial":"3f","time":0}`: 200,
	} {
		if w := revoke(body); w.Code != want {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	revoke(`{"serial":"1f","until":1099511627776,"time":5}`)
	revoke(`{"serial":"1f","time":0}`)
	var list []protocol.Revocation
	if s.get("GET", "/v1/revocations", nil, &list); len(list) != 2 || list[0].Serial != "1f" || list[0].Until != 1<<40 ||
		list[0].Time < 1000 {
		t.Errorf("%+v", list)
	}
	var records []protocol.AuditRecord
	if s.get("GET", "/v1/audit?caller=ana", nil, &records); len(records) == 0 ||
		records[0].About != "certificate of serial number 1f" {
		t.Errorf("%+v", records)
	}
	w := revoke(`{"serial":"2e","time":0}`)
	if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "another certificate") {
		t.Errorf("the own certificate: %d %s", w.Code, w.Body)
	}
}

// TestAuditOrder: records are sorted by time, also if another coordinator sends older ones later, and then by
// number. A limit keeps the newest.
func TestAuditOrder(t *testing.T) {
	s := newSite(t)
	for _, seconds := range []int64{50, 20, 40, 40, 90, 10} {
		r := protocol.AuditRecord{Time: seconds, Role: "read", From: "h:1", Request: "GET /v1/backup",
			Refused: "no", Count: 1}
		s.propose(protocol.EntryRecord, protocol.RecordEntry{Records: []protocol.AuditRecord{r}})
	}
	for query, want := range map[string]string{"": "90/5 50/1 40/4 40/3 20/2 10/6", "?limit=2": "90/5 50/1",
		"?since=40": "90/5 50/1 40/4 40/3", "?after=1": "40/4 40/3 20/2 10/6", "?after=4&limit=2": "40/3 20/2",
		"?after=6": "", "?after=2&since=40": ""} {
		var list []protocol.AuditRecord
		s.get("GET", "/v1/audit"+query, nil, &list)
		var got []string
		for _, r := range list {
			got = append(got, fmt.Sprintf("%d/%d", r.Time, r.Number))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %v, want %s", query, got, want)
		}
	}
	s.refuse(404, "GET", "/v1/audit?after=7", nil, "audit record 7", "newest record")
}

// TestRefusalsOfOthers: a coordinator may only report refusals, and no user may report any.
func TestRefusalsOfOthers(t *testing.T) {
	s := newSite(t)
	post := func(role rights.Role, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "/v1/audit", strings.NewReader(body))
		w := httptest.NewRecorder()
		Handler(s.cfg).ServeHTTP(w, r.WithContext(access.With(r.Context(), access.Caller{Role: role, Name: "b"})))
		return w
	}
	const refusal = `{"records":[{"number":0,"time":5,"caller":"eve","role":"read","from":"h","request":"POST /v1/jobs","refused":"role","count":3}]}`
	if w := post(rights.Coordinator, strings.Replace(refusal, `"count":3`, `"count":0`, 1)); w.Code != 400 {
		t.Errorf("a change: %d %s", w.Code, w.Body)
	}
	if w := post(rights.Admin, refusal); w.Code != 403 || !strings.Contains(w.Body.String(), "only coordinators") {
		t.Errorf("an admin: %d %s", w.Code, w.Body)
	}
	if w := post(rights.Coordinator, refusal); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	var records []protocol.AuditRecord
	if s.get("GET", "/v1/audit", nil, &records); len(records) != 1 || records[0].Caller != "eve" ||
		records[0].Count != 3 || records[0].Number != 1 {
		t.Errorf("%+v", records)
	}
}
