package monitoring_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/internal/certs"
)

// aPrometheus is a Prometheus that runs for a test.
type aPrometheus struct{ url string }

// startPrometheus starts Debian's Prometheus, which scrapes processes by the names and with the
// alerts of deploy/prometheus.yml, but once a second, and with the certificate in a folder. Where it is
// not installed the test is skipped.
func startPrometheus(t *testing.T, coordinators, workers map[string]string, certificate string) *aPrometheus {
	t.Helper()
	exe, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("Prometheus is not installed (Debian: apt-get install prometheus)")
	}
	dir := t.TempDir()
	config := cmdtest.Write(t, dir, "prometheus.yml", prometheusConfig(t, coordinators, workers, certificate))
	listen := testkit.FreeAddress(t)
	cmd := exec.Command(exe, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+listen, "--query.lookback-delta=10s")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
		log.Close()
		if t.Failed() {
			t.Log(cmdtest.Read(t, log.Name()))
		}
	})
	p := &aPrometheus{url: "http://" + listen}
	testkit.Until(t, "Prometheus to be ready", func() bool {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("Prometheus ended: %v", err)
		default:
		}
		return cmdtest.Listens(listen)
	})
	return p
}

// prometheusConfig is the shipped configuration with these targets, and at a test's pace.
func prometheusConfig(t *testing.T, coordinators, workers map[string]string, certificate string) string {
	t.Helper()
	var c map[string]any
	if err := yaml.Unmarshal([]byte(cmdtest.Read(t, "../../deploy/prometheus.yml")), &c); err != nil {
		t.Fatal(err)
	}
	c["global"] = map[string]any{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
	for i, f := range c["rule_files"].([]any) {
		path, err := filepath.Abs("../../deploy/" + f.(string))
		if err != nil {
			t.Fatal(err)
		}
		c["rule_files"].([]any)[i] = path
	}
	targets := map[string]map[string]string{"coordinator": coordinators, "worker": workers}
	for _, s := range c["scrape_configs"].([]any) {
		s := s.(map[string]any)
		of, ok := targets[s["job_name"].(string)]
		if !ok {
			t.Fatalf("deploy/prometheus.yml scrapes %v", s["job_name"])
		}
		delete(s, "dns_sd_configs")
		s["tls_config"] = map[string]any{
			"ca_file": filepath.Join(certificate, certs.AuthorityFile), "cert_file": filepath.Join(certificate, certs.CertFile),
			"key_file": filepath.Join(certificate, certs.KeyFile),
		}
		s["static_configs"] = []any{map[string]any{"targets": slices.Sorted(maps.Values(of))}}
	}
	b, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// measured is one series of an answer.
type measured struct {
	labels map[string]string
	value  float64
}

func (m measured) String() string {
	var parts []string
	for _, l := range slices.Sorted(maps.Keys(m.labels)) {
		if l != "__name__" && l != "job" {
			parts = append(parts, m.labels[l])
		}
	}
	return strings.TrimSpace(strings.Join(parts, " ") + " " + strconv.FormatFloat(m.value, 'g', 4, 64))
}

// answer is what Prometheus's HTTP API sends.
type answer struct {
	Status, Error string
	Data          struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
		Groups []struct {
			Rules []struct{ Name, Health, LastError, State string }
		}
	}
}

func (p *aPrometheus) get(t *testing.T, path string, query url.Values) *answer {
	t.Helper()
	var a answer
	if err := json.Unmarshal([]byte(page(t, p.url+path+"?"+query.Encode())), &a); err != nil {
		t.Fatal(err)
	}
	if a.Status != "success" {
		t.Fatalf("%s %v: %s", path, query, a.Error)
	}
	return &a
}

// ask returns what Prometheus answers to a query as of now.
func (p *aPrometheus) ask(t *testing.T, query string) []measured {
	t.Helper()
	var all []measured
	for _, r := range p.get(t, "/api/v1/query", url.Values{"query": {query}}).Data.Result {
		v, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		all = append(all, measured{labels: r.Metric, value: v})
	}
	slices.SortFunc(all, func(a, b measured) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// rules returns the state of each alert; one that cannot be evaluated is an error.
func (p *aPrometheus) rules(t *testing.T) map[string]string {
	t.Helper()
	states := make(map[string]string)
	for _, g := range p.get(t, "/api/v1/rules", nil).Data.Groups {
		for _, r := range g.Rules {
			if r.Health == "err" {
				t.Errorf("alert %s: %s", r.Name, r.LastError)
			}
			states[r.Name] = r.State
		}
	}
	return states
}
