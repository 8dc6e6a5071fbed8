package coordinator_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/nats-io/nats.go"
)

// hostile is a secured cluster of three coordinators and a worker, with identities of every
// role that try everything.
type hostile struct {
	*secured
	folders map[string]string // of certificates, by who; without a folder the caller is anonymous
	cluster string
	web     map[string]*http.Client // by who
}

// everybody lists who tries: a role, and how the docs name it.
var everybody = []string{"anonymous", "read", "submit", "admin", "coordinator", "worker", "pool", "serve", "proxy"}

func newHostile(t *testing.T) *hostile {
	t.Helper()
	h := &hostile{secured: secure(t, 3), folders: map[string]string{"anonymous": ""}, web: make(map[string]*http.Client)}
	h.startAll(1)
	ctx := deadline(t)
	h.leader(ctx)
	if _, err := h.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	info, err := h.client.Cluster(ctx)
	if err != nil {
		t.Fatal(err)
	}
	h.cluster = info.ID
	for _, user := range certs.Rights {
		h.authority.User("u"+user, user)
		h.folders[user] = h.authority.FolderOf(certs.User, "u"+user)
	}
	for _, role := range certs.NodeRoles {
		h.folders[string(role)] = h.authority.Folder(role, "eve")
	}
	for who, folder := range h.folders {
		client := browser(t, folder)
		connections := client.Transport.(*http.Transport)
		connections.DisableKeepAlives = false // some 1,500 requests need no handshake each
		t.Cleanup(connections.CloseIdleConnections)
		h.web[who] = client
	}
	return h
}

// table reads the rows of a table in a section of a page.
func table(t *testing.T, file, section, columns string) (rows [][]string) {
	t.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n"+section+"\n")
	_, text, ok := strings.Cut(text, "\n"+columns+"\n")
	if !ok {
		t.Fatalf("%s has no table %s in %s", file, columns, section)
	}
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if strings.HasPrefix(line, "| ---") || len(cells) != strings.Count(columns, "|")-1 {
			if strings.TrimSpace(line) == "" {
				return rows
			}
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	return rows
}

// permitted returns who may make a request, by the words of docs/reference/http.md.
func permitted(t *testing.T) map[string][]string {
	t.Helper()
	users := []string{"anonymous", "read", "submit", "admin"} // each role has the rights of the roles before it
	may := make(map[string][]string)
	for _, row := range table(t, "../docs/reference/http.md", "## Requests",
		"| request | from | answered by | purpose |") {
		request := strings.Trim(row[0], "`")
		for from := range strings.SplitSeq(row[1], ", ") {
			role, condition, _ := strings.Cut(from, " ")
			switch i := slices.Index(users, role); {
			case role == "everybody":
				may[request] = append(may[request], everybody...)
			case i > 0:
				may[request] = append(may[request], users[i:]...)
			case condition == "":
				may[request] = append(may[request], role)
			default: // with ?local=true
				local := request + "?local=true"
				if len(may[local]) == 0 {
					may[local] = slices.Clone(may[request])
				}
				may[local] = append(may[local], role)
			}
		}
	}
	if len(may) < 40 {
		t.Fatalf("http.md has rights for %d requests only", len(may))
	}
	return may
}

var placeholder = regexp.MustCompile(`\{[a-z.]+\}`)

// TestHostileHTTP: on the leader and on a follower, every request is refused to every role
// that docs/reference/http.md does not name. Each request has a twin, the roles that it names, which is
// answered. Nothing is changed by all of them.
func TestHostileHTTP(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	ctx := deadline(t)
	before := h.look(ctx)
	tried, passed := 0, 0
	for request, may := range permitted(t) {
		method, path, _ := strings.Cut(request, " ")
		path = placeholder.ReplaceAllString(path, strings.Repeat("0", 64)) // a digest, and a name that nothing has
		for i := range h.peers {
			for _, who := range everybody {
				status, body := h.ask(ctx, h.peers[i].Port, who, method, path)
				refused := status == http.StatusUnauthorized || status == http.StatusForbidden
				allowed := slices.Contains(may, who)
				if tried++; allowed {
					passed++
				}
				if refused == allowed {
					t.Errorf("%s, %s at %s: status %d %.300s", who, request, h.peers[i].ID, status, body)
				}
				if advice := regexp.MustCompile("coppice certs|COPPICE_TOKEN_FILE|local=true|Coppice-Caller"); refused &&
					!advice.MatchString(body) {
					t.Errorf("%s, %s: the refusal %q gives no advice", who, request, body)
				}
				if who == "anonymous" && body != "" && !refused && path != "/healthz" {
					t.Errorf("%s answers anonymous callers with %q", path, body)
				}
			}
		}
	}
	t.Logf("%d requests tried, %d of them with the right", tried, passed)
	h.unchanged(ctx, before)
}

// ask sends a request with a body that is no JSON, which changes nothing if it is allowed.
func (h *hostile) ask(ctx context.Context, port int, who, method, path string) (status int, body string) {
	h.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, fmt.Sprintf("https://127.0.0.1:%d%s", port, path),
		strings.NewReader("["))
	if err != nil {
		h.t.Fatal(err)
	}
	response, err := h.web[who].Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer response.Body.Close()
	b, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	if err != nil {
		h.t.Fatal(err)
	}
	return response.StatusCode, string(b)
}

// sight is what nobody without a right may change.
type sight struct {
	Jobs     []string
	Datasets []string
	Members  []string
}

func (h *hostile) look(ctx context.Context) (s sight) {
	h.t.Helper()
	jobs, err := h.client.Jobs().List(ctx, protocol.JobQuery{})
	if err != nil {
		h.t.Fatal(err)
	}
	for i := range jobs.Jobs {
		s.Jobs = append(s.Jobs, fmt.Sprint(jobs.Jobs[i].ID, jobs.Jobs[i].Name))
	}
	data, err := h.client.Datasets().List(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, d := range data {
		s.Datasets = append(s.Datasets, d.Name+d.Digest+d.Owner)
	}
	members, err := h.client.Members().List(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, m := range members.Members {
		s.Members = append(s.Members, m.ID)
	}
	return s
}

// unchanged compares what there is with a former look, and trains a job: its model has the
// digest of --local.
func (h *hostile) unchanged(ctx context.Context, before sight) {
	h.t.Helper()
	if after := h.look(ctx); !reflect.DeepEqual(after, before) {
		h.t.Errorf("%+v has become %+v", before, after)
	}
	spec := testSpec(map[string]string{"steps": lasting(200), "trees": "2"})
	if got, want := h.train(ctx, spec, nil).Models[0].Digest, localDigest(h.t, spec); got != want {
		h.t.Errorf("digest %s, --local has %s", got, want)
	}
}

// intruder is a connection to NATS with a certificate.
type intruder struct{ *nats.Conn }

// intrude connects to the NATS of the first coordinator under a name.
func (h *hostile) intrude(who, name string) (*intruder, error) {
	config := &tls.Config{InsecureSkipVerify: true}
	if dir := h.folders[who]; dir != "" {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, certs.CertFile), filepath.Join(dir, certs.KeyFile))
		if err != nil {
			h.t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	c, err := nats.Connect("nats://"+h.at(2), nats.SetCustomDialer(shaking{config: config}), nats.Name(name),
		nats.Timeout(5*time.Second), nats.NoReconnect(),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})) // it would print refusals
	if err == nil {
		h.t.Cleanup(c.Close)
	}
	return &intruder{Conn: c}, err
}

// shaking makes the handshake of TLS before the first bytes of NATS.
type shaking struct{ config *tls.Config }

// Dial implements nats.CustomDialer.
func (s shaking) Dial(network, address string) (net.Conn, error) {
	return tls.Dial(network, address, s.config)
}

// SkipTLSHandshake tells the library that connections have TLS already.
func (shaking) SkipTLSHandshake() bool { return true }

// refused reports whether the server refuses what do does.
func (x *intruder) refused(t *testing.T, do func() error) bool {
	t.Helper()
	before := x.LastError()
	if err := do(); err != nil {
		t.Fatal(err)
	}
	if err := x.FlushTimeout(10 * time.Second); err != nil { // the refusal comes before the answer
		t.Fatal(err)
	}
	return x.LastError() != before // each error is a value of its own
}

// TestHostileNATS: every subject of protocol/PROTOCOL.md is refused to every role that it does not
// name, and with another name to the roles that it names. The twin with the right name may
// use the subject. Callers without a certificate, users and model servers do not even connect.
func TestHostileNATS(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
	h := newHostile(t)
	ctx := deadline(t)
	before := h.look(ctx)
	for _, who := range []string{"anonymous", "read", "submit", "admin", "serve"} {
		if _, err := h.intrude(who, "eve"); err == nil {
			t.Errorf("%s connects to NATS", who)
		}
	}
	if _, err := h.intrude("worker", "w0"); err == nil {
		t.Error("a worker connects under another name")
	}
	if _, err := h.intrude("pool", "eve"); err == nil {
		t.Error("a member of a pool connects without a name of the pool")
	}
	names := map[string]string{"worker": "eve", "pool": "eve-1", "coordinator": "eve"}
	tried, refused := 0, 0
	for who, name := range names {
		x, err := h.intrude(who, name)
		if err != nil {
			t.Fatalf("%s: %v", who, err)
		}
		for _, row := range table(t, "../protocol/PROTOCOL.md", "## Subjects",
			"| subject | carries | may publish | may subscribe |") {
			for column, may := range map[string]string{"publish": row[2], "subscribe": row[3]} {
				for _, own := range []bool{true, false} {
					subject := h.subject(row[0], who, name, own)
					allowed := h.names(may, who, own, row[0])
					got := x.refused(t, func() error {
						if column == "publish" {
							return x.Publish(subject, []byte{protocol.Version, 200})
						}
						sub, err := x.QueueSubscribeSync(subject, "thieves")
						if err != nil {
							return err
						}
						return errors.Join(x.FlushTimeout(10*time.Second), sub.Unsubscribe())
					})
					if tried++; got {
						refused++
					}
					if got == allowed {
						t.Errorf("%s %s may %s %s: %v, want %v", who, name, column, subject, !got, allowed)
					}
				}
			}
		}
		for _, subject := range []string{">", "coppice.>", "coppice." + h.cluster + ".>", "_INBOX.>", "$SYS.>", "coppice." +
			h.cluster + ".work.*", "coppice.other.lead"} {
			if !x.refused(t, func() error { _, err := x.SubscribeSync(subject); return err }) {
				t.Errorf("%s may subscribe to %s", who, subject)
			}
		}
	}
	t.Logf("%d subjects tried, %d refused", tried, refused)
	h.unchanged(ctx, before)
}

// subject fills in a subject of protocol/PROTOCOL.md: with the name of who tries, or with others.
func (h *hostile) subject(row, who, name string, own bool) string {
	worker, coordinator := "w0", "a"
	if own && who == "coordinator" {
		coordinator = name
	} else if own {
		worker = name
	}
	text := strings.NewReplacer("<worker>", worker, "<coordinator>", coordinator, "<epoch>", "12", ">", "x.y").
		Replace(strings.Trim(row, "`"))
	return "coppice." + h.cluster + "." + text
}

// names reports whether a cell of protocol/PROTOCOL.md names who tries.
func (h *hostile) names(cell, who string, own bool, subject string) bool {
	kind := map[string]string{"worker": "worker", "pool": "worker", "coordinator": "coordinator"}[who]
	switch {
	case kind == "":
		return false
	case cell == kind+"s":
		return true
	}
	return cell == "that "+kind && (own || !strings.Contains(subject, "<"+kind+">"))
}

// TestHostileSearch: requests with searches that need a quarter of the draws that a spec can ask for keep nobody from
// submitting experiments. Each is answered soon, or ends when its client has left.
func TestHostileSearch(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
	ctx := deadline(t)
	c := start(t, 1, 0)
	if _, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	send := func(ctx context.Context, methods string) (*protocol.ExperimentPlan, error) {
		return c.client.Experiments().Check(ctx, protocol.ExperimentRequest{File: "e.yaml",
			Spec: "name: e\ndatasets: [{dataset: art}]\nfolds: 10\nmethods:\n  - " + methods + "\n"})
	}
	for _, draws := range []int{1_000_000, 20_000} {
		if _, err := send(ctx, fmt.Sprintf("{algorithm: ldlf, search: {draws: %d, space: {learning_rate: {log: [1e-9, 1]}}}}",
			draws)); status(err) != http.StatusBadRequest {
			t.Errorf("%d draws from too few values: %v", draws, err)
		}
	}
	draws := 5000
	large := fmt.Sprintf("{algorithm: ldlf, search: {draws: %d, space: {learning_rate: {log: [1e-9, 1]}, momentum: "+
		"{real: [0, 0.5]}}}}", draws)
	gone, leave := context.WithTimeout(ctx, 100*time.Millisecond)
	defer leave()
	var attacks sync.WaitGroup
	for range 8 {
		attacks.Go(func() { _, _ = send(gone, large) }) // its error says that the client has left
	}
	honest, err := send(ctx, "aa-knn")
	if err != nil || honest.Runs != 10 {
		t.Errorf("%+v, %v", honest, err)
	}
	attacks.Wait()
	if p, err := send(ctx, large); err != nil || p.Runs != 10*draws {
		t.Errorf("the largest experiment: %v", err)
	}
}
