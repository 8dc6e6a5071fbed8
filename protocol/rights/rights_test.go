package rights

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/protocol"
)

var update = flag.Bool("update", false, "rewrite the table of requests in http.md")

var roles = []Role{Anonymous, Read, Submit, Admin, Coordinator, Worker, Pool, Serve, Proxy}

// row is a subject of PROTOCOL.md, with placeholders, and who may publish and subscribe.
type row struct{ subject, publish, subscribe string }

// rows reads the table of subjects.
func rows(t *testing.T) (all []row) {
	t.Helper()
	page, err := os.ReadFile("../PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Subjects\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| .* \\| ([a-z ]+) \\| ([a-z ]+) \\|$").
		FindAllStringSubmatch(section, -1) {
		all = append(all, row{m[1], m[2], m[3]})
	}
	if n := strings.Count(section, "\n| `"); n != len(all) || n < 10 {
		t.Fatalf("%d of %d rows can be read", len(all), n)
	}
	return all
}

// in returns the row's subject of a cluster.
func (r *row) in(cluster, worker, coordinator string) string {
	subject := strings.NewReplacer("<worker>", worker, "<coordinator>", coordinator, "<epoch>", "12", ">", "x.y").
		Replace(r.subject)
	return "coppice." + cluster + "." + subject
}

// covers reports whether one of the patterns matches a subject.
func covers(patterns []string, subject string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		p, s := strings.Split(pattern, "."), strings.Split(subject, ".")
		for i := range p {
			if p[i] == ">" {
				return i < len(s)
			}
			if i >= len(s) || p[i] != "*" && p[i] != s[i] {
				return false
			}
		}
		return len(p) == len(s)
	})
}

// onNATS returns the rights of an identity of this name, or of a member of this name of pool gpu.
func onNATS(s protocol.Subjects, role Role, name string) NATS {
	if role == Pool {
		return OnNATS(s, role, "gpu", name)
	}
	return OnNATS(s, role, name, name)
}

// TestSubjects: each role may publish and subscribe to the subjects that PROTOCOL.md says, and no
// other. It has no subjects of another name or of another cluster.
func TestSubjects(t *testing.T) {
	s := protocol.Subjects{Cluster: "c"}
	for _, role := range roles {
		for _, name := range []string{"gpu-1", "gpu-x1"} {
			got := onNATS(s, role, name)
			used := make(map[string]bool)
			check := func(r *row, what, who string, patterns []string) {
				worker, coordinator := "w", "a"
				plural, own, mine := "", "", [2]string{worker, coordinator}
				switch role {
				case Worker, Pool:
					plural, own, mine[0] = "workers", "that worker", name
				case Coordinator:
					plural, own, mine[1] = "coordinators", "that coordinator", name
				}
				for _, c := range []struct {
					subject string
					want    bool
				}{
					{r.in("c", mine[0], mine[1]), who == plural || who == own},
					{r.in("c", worker, coordinator), who == plural || who == own &&
						!strings.Contains(r.subject, strings.Replace(own, "that ", "<", 1))},
					{r.in("d", mine[0], mine[1]), false},
				} {
					if covers(patterns, c.subject) != c.want {
						t.Errorf("%s %s may %s %s: %v, want %v", role, name, what, c.subject, !c.want, c.want)
					}
				}
				for _, p := range patterns {
					if covers([]string{p}, r.in("c", mine[0], mine[1])) {
						used[p] = true
					}
				}
			}
			for _, r := range rows(t) {
				check(&r, "publish", r.publish, got.Publish)
				check(&r, "subscribe to", r.subscribe, got.Subscribe)
			}
			for _, p := range slices.Concat(got.Publish, got.Subscribe) {
				if !used[p] {
					t.Errorf("%s may use %s, which is not in PROTOCOL.md", role, p)
				}
			}
			if answers := role == Worker || role == Pool; (got.Answer > 0) != answers {
				t.Errorf("%s answers within %v", role, got.Answer)
			}
		}
	}
}

// TestEverySubjectHasARow: PROTOCOL.md has each subject that package protocol makes.
func TestEverySubjectHasARow(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../names.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	s, made := reflect.ValueOf(protocol.Subjects{Cluster: "c"}), 0
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil || !f.Name.IsExported() || f.Type.Results.List[0].Type.(*ast.Ident).Name != "string" {
			continue
		}
		var args []reflect.Value
		for _, field := range f.Type.Params.List {
			for _, name := range field.Names {
				if name.Name == "epoch" {
					args = append(args, reflect.ValueOf(uint64(12)))
				} else {
					args = append(args, reflect.ValueOf("<"+name.Name+">"))
				}
			}
		}
		made++
		got := strings.TrimPrefix(s.MethodByName(f.Name.Name).Call(args)[0].String(), "coppice.c.")
		got = strings.NewReplacer(".12", ".<epoch>", ".*", ".<epoch>").Replace(got)
		if !slices.ContainsFunc(rows(t), func(r row) bool {
			return r.subject == got || strings.HasPrefix(r.subject, got+".")
		}) {
			t.Errorf("PROTOCOL.md lacks the subject %s of %s", got, f.Name.Name)
		}
	}
	if made < 9 {
		t.Errorf("only %d subjects are made", made)
	}
}

// TestStrangeNames: an identity with a name that no process can have has no rights.
func TestStrangeNames(t *testing.T) {
	s := protocol.Subjects{Cluster: "c"}
	for _, name := range []string{"", "*", ">", "a.b", "a b", "*.>", "$all", "a/b", "é", "a\x00", "a\r\nPUB lead 0\r\n",
		strings.Repeat("x", 65)} {
		for _, role := range roles {
			if got := onNATS(s, role, name); len(got.Publish)+len(got.Subscribe) > 0 || got.Answer != 0 {
				t.Errorf("%s %q may use %+v", role, name, got)
			}
		}
	}
}

// TestWorkersReachCoordinatorsOnly: nothing that a worker publishes is received by a worker or a
// member of a pool, whatever its name is.
func TestWorkersReachCoordinatorsOnly(t *testing.T) {
	s := protocol.Subjects{Cluster: "c"}
	for _, from := range []Role{Worker, Pool} {
		for _, to := range []Role{Worker, Pool, Serve, Admin} {
			for _, name := range []string{"gpu-w", "gpu-a", "gpu-worker", "gpu-all"} {
				for _, sent := range onNATS(s, from, name).Publish {
					for _, received := range slices.Concat(onNATS(s, to, name).Subscribe, onNATS(s, to, "gpu-other").Subscribe) {
						if overlap(strings.Split(received, "."), strings.Split(sent, ".")) {
							t.Errorf("%s %s publishes %s, and %s receives %s", from, name, sent, to, received)
						}
					}
				}
			}
		}
	}
}

// overlap reports whether a subject can match both patterns of NATS.
func overlap(a, b []string) bool {
	for i := range min(len(a), len(b)) {
		switch {
		case a[i] == ">" || b[i] == ">":
			return true
		case a[i] != b[i] && a[i] != "*" && b[i] != "*":
			return false
		}
	}
	return len(a) == len(b)
}

// TestSameName: a worker with the name of a coordinator uses no subject of the coordinator's.
func TestSameName(t *testing.T) {
	s := protocol.Subjects{Cluster: "c"}
	for _, r := range OnNATS(s, Worker, "a", "a").Subscribe {
		if slices.Contains(OnNATS(s, Coordinator, "a", "a").Subscribe, r) {
			t.Errorf("both subscribe to %s", r)
		}
	}
}

// TestPools: a member of a pool has the rights of a worker of the name that it states, if the name
// is one of the pool's.
func TestPools(t *testing.T) {
	s := protocol.Subjects{Cluster: "c"}
	for name, want := range map[string]bool{"gpu-1": true, "gpu-1-2": true, "gpu": false, "gpu1": false, "cpu-1": false,
		"": false, "gpu-*": false, "gpu-a.b": false, "gpu->": false} {
		expected := NATS{}
		if want {
			expected = OnNATS(s, Worker, name, "")
		}
		if got := OnNATS(s, Pool, "", "-"+name); !reflect.DeepEqual(got, NATS{}) {
			t.Errorf("%q of a pool without a name may use %+v", name, got)
		}
		if got := OnNATS(s, Pool, "gpu", name); !reflect.DeepEqual(got, expected) {
			t.Errorf("%q may use %+v", name, got)
		}
	}
}

// refusals is the request of a coordinator that has counted refusals.
const refusals = "POST /v1/audit"

// table returns the requests of the API, or of the page, as a table in Markdown.
func table(page bool) string {
	var b strings.Builder
	b.WriteString("| request | from | answered by | purpose |\n| --- | --- | --- | --- |\n")
	for _, r := range Requests {
		if page != (r.Kind&Page != 0) {
			continue
		}
		from := []string{string(r.Role)}
		switch {
		case r.Role == "":
			from = nil
		case r.Role == Anonymous:
			from = []string{"everybody"}
		case r.Kind&OwnOnly != 0:
			from = []string{string(r.Role) + " (its own)"}
		}
		for _, role := range []Role{Coordinator, Worker, Pool, Serve, Anonymous} {
			switch r.Others[role] {
			case Full:
				from = append(from, string(role))
			case Local:
				from = append(from, string(role)+" with `?local=true`")
			case Status:
				from = append(from, "everybody (only the status)")
			}
		}
		by := "leader"
		switch {
		case r.Kind&AnyAnswers != 0:
			by = "any"
		case r.Kind&AnyIfLocal != 0:
			by = "leader; with `?local=true` any"
		}
		b.WriteString("| `" + r.Pattern + "` | " + strings.Join(from, ", ") + " | " + by + " | " + r.Purpose + " |\n")
	}
	return b.String()
}

// TestRequests: docs/reference/http.md has the tables of requests.
func TestRequests(t *testing.T) {
	const page = "../../docs/reference/http.md"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := string(b)
	for begin, table := range map[string]string{"TestRequests -update -->\n": table(false),
		"TestRequests -update: page -->\n": table(true)} {
		head, rest, ok := strings.Cut(want, begin)
		_, tail, also := strings.Cut(rest, "<!-- end")
		if !ok || !also {
			t.Fatal("http.md has no place for the table of requests")
		}
		want = head + begin + "\n" + table + "\n<!-- end" + tail
	}
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(b) != want {
		t.Error("http.md has another table of requests: run go test ./protocol/rights -run TestRequests -update")
	}
}

// TestOnHTTP: what each role may do with every request.
func TestOnHTTP(t *testing.T) {
	var answered []string
	for _, r := range Requests {
		answered = append(answered, r.Pattern)
	}
	for _, r := range append(slices.Clone(answered), "GET /v1/unknown", "PATCH /v1/jobs", "GET /v1/jobs/7", "") {
		method, route, _ := strings.Cut(r, " ")
		access := make(map[Role]Access)
		for _, role := range append(roles, "", "other") {
			access[role] = OnHTTP(role, method, route)
		}
		page := byPattern[r] != nil && byPattern[r].Kind&Page != 0
		if open := r == "GET /healthz" || r == "GET /readyz" || page; !open && access[Anonymous] != None ||
			access[""] != access[Anonymous] || access["other"] != access[Anonymous] {
			t.Errorf("%s is open to anybody: %v", r, access)
		}
		if !(access[Anonymous] <= access[Read] && access[Read] <= access[Submit] && access[Submit] <= access[Admin]) {
			t.Errorf("%s: a role may do less than the role before it: %v", r, access)
		}
		if method != "GET" && !page { // the page makes a request of the API for its caller
			for _, role := range []Role{Read, Worker, Pool, Serve, Coordinator} {
				if access[role] != None && (r != refusals || role != Coordinator) {
					t.Errorf("%s may be called by %s", r, role)
				}
			}
		}
		if r == refusals { // no user may write audit records
			if access[Admin] != None || access[Coordinator] != Full {
				t.Errorf("%s: %v", r, access)
			}
			continue
		}
		if known := slices.Contains(answered, r); access[Admin] == Full != known {
			t.Errorf("%s: an admin has access %v", r, access[Admin])
		}
	}
	for _, c := range []struct {
		role          Role
		method, route string
		want          Access
	}{
		{Anonymous, "GET", "/readyz", Status},
		{Read, "GET", "/readyz", Full},
		{Read, "GET", "/v1/blobs/{digest}", Full}, // but no samples
		{Submit, "GET", "/v1/blobs/{digest}", Full},
		{Submit, "POST", "/v1/jobs/{job}/cancel", Own},
		{Admin, "POST", "/v1/jobs/{job}/cancel", Full},
		{Submit, "GET", "/v1/backup", None},
		{Worker, "GET", "/v1/cluster", Local},
		{Pool, "GET", "/v1/cluster", Local},
		{Worker, "GET", "/v1/jobs", None},
		{Serve, "GET", "/v1/models/{name...}", Full},
		{Serve, "GET", "/v1/datasets", None},
		{Coordinator, "GET", "/v1/self", Full},
	} {
		if got := OnHTTP(c.role, c.method, c.route); got != c.want {
			t.Errorf("%s %s %s: %v, want %v", c.role, c.method, c.route, got, c.want)
		}
	}
}
