package coordinator_test

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
)

// trust returns a source without a certificate.
func (s *secured) trust() *certs.Source {
	s.t.Helper()
	source, err := certs.Trust(filepath.Join(s.authority.Folder(certs.User, "nobody"), certs.AuthorityFile))
	if err != nil {
		s.t.Fatal(err)
	}
	return source
}

// token makes a token valid, and returns its text and what the cluster knows.
func (s *secured) token(ctx context.Context, r protocol.TokenRequest) (string, *protocol.Token) {
	s.t.Helper()
	text, id, hash := access.NewToken()
	r.ID, r.SHA256 = id, hex.EncodeToString(hash[:])
	made, err := s.client.Tokens().Create(ctx, r)
	if err != nil {
		s.t.Fatal(err)
	}
	return text, made
}

// asToken returns a client with a token, of one coordinator.
func (s *secured) asToken(text string, port int) *client.Client {
	s.t.Helper()
	c, err := client.NewWithToken(fmt.Sprintf("127.0.0.1:%d", port), s.trust(), text)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	c.Patience = patience
	return c
}

// status returns the status of the error of a coordinator; 0: there is none.
func status(err error) int {
	var refused *client.Error
	if errors.As(err, &refused) {
		return refused.Status
	}
	return 0
}

// submission is a job that no worker computes.
func submission(name string) protocol.Spec {
	s := eventful()
	s.Name = name
	return s
}

// TestTokens: a token is valid at every coordinator as soon as it is made. Its role, its owner and its
// quota hold.
func TestTokens(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	s := secure(t, 3)
	s.startAll(0)
	if _, err := s.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art", Shared: true},
		generate.Artificial(600, 1), importer.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, p := range s.peers {
		text, made := s.token(ctx, protocol.TokenRequest{Role: "submit", Owner: "sam", Quota: 1, Expires: time.Now().
			Unix() + 1000})
		c := s.asToken(text, p.Port)
		if _, err := c.Jobs().List(ctx, protocol.JobQuery{}); err != nil {
			t.Errorf("at %s: %v", p.ID, err)
		}
		if made.Owner != "sam" || made.Role != "submit" || made.Created == 0 || made.Quota != 1 {
			t.Errorf("%+v", made)
		}
	}
	text, _ := s.token(ctx, protocol.TokenRequest{Role: "submit", Owner: "sam", Quota: 1})
	sam := s.asToken(text, s.peers[1].Port)
	j, err := sam.Jobs().Submit(ctx, submission("first"))
	if err != nil || j.Owner != "sam" {
		t.Fatalf("%+v, %v", j, err)
	}
	if _, err := sam.Jobs().Submit(ctx, submission("second")); status(err) != http.StatusForbidden ||
		!strings.Contains(err.Error(),
			"this user has 1 job that did not end, and the quota of the token or certificate is 1") {
		t.Errorf("above the quota: %v", err)
	}
	if _, err := (sam.Tokens()).List(ctx); status(err) != http.StatusForbidden ||
		!strings.Contains(err.Error(), "needs the role admin") {
		t.Errorf("the list for a submitter: %v", err)
	}
	if _, err := (sam.Tokens()).Create(ctx, protocol.TokenRequest{}); status(err) != http.StatusForbidden {
		t.Errorf("a submitter makes a token: %v", err)
	}
	read, _ := s.token(ctx, protocol.TokenRequest{Role: "read", Owner: "sam"})
	rita := s.asToken(read, s.peers[2].Port)
	if _, err := rita.Jobs().Cancel(ctx, "first"); status(err) != http.StatusForbidden {
		t.Errorf("a reader cancels: %v", err)
	}
	other := s.clientOf(s.authority.User("eve", "submit"))
	if _, err := other.Jobs().Cancel(ctx, "first"); status(err) != http.StatusForbidden ||
		!strings.Contains(err.Error(), "sam") {
		t.Errorf("another user cancels: %v", err)
	}
	mine, err := s.clientOf(s.authority.User("sam", "submit")).Jobs().List(ctx, protocol.JobQuery{Mine: true})
	if err != nil || mine.Total != 1 {
		t.Errorf("the jobs of sam: %+v, %v", mine, err)
	}
	if _, err := sam.Jobs().Cancel(ctx, "first"); err != nil {
		t.Errorf("the owner: %v", err)
	}
	for what, r := range map[string]protocol.TokenRequest{
		"a role": {Role: "root", Owner: "x"}, "an owner": {Role: "read", Owner: "a b"}, "no owner": {Role: "read",
			Owner: "-"}, "a time in the past": {Role: "read", Owner: "x", Expires: 5},
	} {
		r.ID, r.SHA256 = "0123456789abcdef", strings.Repeat("ab", 32)
		if _, err := (s.client.Tokens()).Create(ctx, r); status(err) != http.StatusBadRequest {
			t.Errorf("with %s: %v", what, err)
		}
	}
	if _, err := (s.client.Tokens()).Revoke(ctx, "0123456789abcdef"); status(err) != http.StatusNotFound {
		t.Errorf("an unknown token is revoked: %v", err)
	}
}

// TestCertificateQuota: a user cannot submit more jobs than the quota of the certificate, at any coordinator.
func TestCertificateQuota(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
	s := secure(t, 3)
	s.startAll(0)
	ctx := deadline(t)
	s.leader(ctx)
	if _, err := s.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art", Shared: true},
		generate.Artificial(600, 1), importer.Options{}); err != nil {
		t.Fatal(err)
	}
	source := s.authority.Limited("lea", "submit", 2)
	for i := range s.peers {
		c, err := client.NewWith(s.port(i, 0), source)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		_, err = c.Jobs().Submit(ctx, submission(fmt.Sprint("limited", i)))
		if i < 2 && err != nil || i == 2 && (status(err) != http.StatusForbidden ||
			!strings.Contains(err.Error(), "certificate is 2")) {
			t.Errorf("job %d: %v", i+1, err)
		}
	}
	if _, err := s.client.Jobs().Submit(ctx, submission("another")); err != nil {
		t.Error(err)
	}
}

// stream opens a stream of a job at a coordinator. The channel is closed at its end.
func (s *secured) stream(ctx context.Context, text, job string, port int) <-chan struct{} {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("https://127.0.0.1:%d/v1/jobs/%s/changes", port, job),
		nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+text)
	response, err := (&http.Client{Transport: s.trust().Transport(&http.Transport{DisableKeepAlives: true})}).Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	lines := bufio.NewReader(response.Body)
	if _, err := lines.ReadString('\n'); err != nil || response.StatusCode != http.StatusOK {
		s.t.Fatalf("%s, %v", response.Status, err)
	}
	end := make(chan struct{})
	go func() {
		defer close(end)
		defer response.Body.Close()
		for {
			if _, err := lines.ReadString('\n'); err != nil {
				return
			}
		}
	}()
	return end
}

// TestRevokedToken: the streams of a revoked token end soon at every coordinator, and further requests are refused.
// The same holds for a token that expires. Streams of other tokens go on.
func TestRevokedToken(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	s := secure(t, 3)
	s.startAll(0)
	if _, err := s.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art", Shared: true},
		generate.Artificial(600, 1), importer.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.Jobs().Submit(ctx, submission("first")); err != nil {
		t.Fatal(err)
	}
	revoked, made := s.token(ctx, protocol.TokenRequest{Role: "read", Owner: "rita"})
	valid, _ := s.token(ctx, protocol.TokenRequest{Role: "read", Owner: "rita"})
	expires := time.Now().Add(8 * time.Second)
	expired, _ := s.token(ctx, protocol.TokenRequest{Role: "read", Owner: "rita", Expires: expires.Unix()})
	var others []<-chan struct{}
	var streams, late []<-chan struct{}
	for _, p := range s.peers {
		late = append(late, s.stream(ctx, expired, "first", p.Port))
	}
	for _, p := range s.peers {
		streams = append(streams, s.stream(ctx, revoked, "first", p.Port))
		others = append(others, s.stream(ctx, valid, "first", p.Port))
	}
	if _, err := (s.client.Tokens()).Revoke(ctx, made.ID); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for i, end := range streams {
		select {
		case <-end:
		case <-ctx.Done():
			t.Fatal("a stream of a revoked token goes on")
		}
		if took := time.Since(began); took > cutWithin*testkit.Slowdown {
			t.Errorf("the stream at coordinator %d ended after %v", i, took)
		}
	}
	for i, end := range late {
		select {
		case <-end:
		case <-ctx.Done():
			t.Fatal("a stream of an expired token goes on")
		}
		if took := time.Since(expires.Truncate(time.Second)); took < 0 || took > cutWithin*testkit.Slowdown {
			t.Errorf("the stream at coordinator %d ended %v after its end", i, took)
		}
	}
	for _, p := range s.peers {
		for _, text := range []string{revoked, expired} {
			if _, err := s.asToken(text, p.Port).Jobs().List(ctx, protocol.JobQuery{}); status(err) != http.StatusUnauthorized ||
				!strings.Contains(err.Error(), "coppice token create") {
				t.Errorf("at %s: %v", p.ID, err)
			}
		}
	}
	for _, end := range others {
		select {
		case <-end:
			t.Error("the stream of a valid token ended")
		default:
		}
	}
}

// TestRestoredTokens: a restored cluster has the tokens of the backup, also a token that was revoked
// afterwards, unless they are dropped.
func TestRestoredTokens(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	s := secure(t, 1)
	s.startAll(0)
	s.token(ctx, protocol.TokenRequest{Role: "read", Owner: "rita"})
	_, gone := s.token(ctx, protocol.TokenRequest{Role: "read", Owner: "rita"})
	_, later := s.token(ctx, protocol.TokenRequest{Role: "read", Owner: "rita"})
	revoke := func(id string) {
		if _, err := (s.client.Tokens()).Revoke(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	revoke(gone.ID)
	revokeCertificate := func(serial string) {
		if _, err := s.client.Certificates().Revoke(ctx, protocol.Revocation{Serial: serial}); err != nil {
			t.Fatal(err)
		}
	}
	revokeCertificate("1f")
	file, err := os.Create(filepath.Join(t.TempDir(), "b"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := s.client.Backup(ctx, file, nil); err != nil {
		t.Fatal(err)
	}
	revoke(later.ID)
	revokeCertificate("2f")
	records, err := s.client.Audit(ctx, protocol.AuditQuery{Limit: 6})
	if err != nil || len(records) != 6 || records[1].About != "token "+later.ID || records[5].About != "token "+later.ID+
		" of rita (role read)" {
		t.Errorf("%+v, %v", records, err)
	}
	clusters := make(map[string]bool)
	for drop, want := range map[bool]int{false: 2, true: 0} {
		if _, err := file.Seek(0, 0); err != nil {
			t.Fatal(err)
		}
		r, err := coordinator.Restore(ctx, file, coordinator.RestoreConfig{Dir: filepath.Join(t.TempDir(), "r"), ID: "a",
			DropTokens: drop})
		if err != nil || r.Tokens != want || r.Revoked != 1 {
			t.Errorf("drop %v: %+v, %v; want %d tokens", drop, r, err, want)
			continue
		}
		clusters[r.Cluster] = true
	}
	if len(clusters) != 2 {
		t.Error("coordinators with and without the tokens would be one cluster")
	}
}
