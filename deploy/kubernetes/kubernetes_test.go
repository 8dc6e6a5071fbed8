package kubernetes

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/internal/version"
)

var update = flag.Bool("update", false, "write monitoring/rules.yaml anew")

// The images of the manifests.
const (
	ownImage     = "coppice"
	kubectlImage = "registry.k8s.io/kubectl"
)

// Pods are selected by these labels.
const (
	nameLabel      = "app.kubernetes.io/name"
	componentLabel = "app.kubernetes.io/component"
)

// TestNames: each object says what it belongs to, each selector selects the pods of its component and no others, and no
// name has a prefix that a user could change without the names in arguments.
func TestNames(t *testing.T) {
	m := all(t)
	component := func(kind string, o meta) string {
		if o.Labels[nameLabel] != "coppice" || !strings.HasPrefix(o.Name, "coppice") || o.Namespace != "" {
			t.Errorf("%s %s has the labels %v and the namespace %q", kind, o.Name, o.Labels, o.Namespace)
		}
		return o.Labels[componentLabel]
	}
	selects := func(kind string, o meta, selector labels, want ...string) {
		component(kind, o)
		if got := m.selected(selector); !slices.Equal(got, want) {
			t.Errorf("%s %s selects %v, want %v", kind, o.Name, got, want)
		}
	}
	of := map[string]string{"coordinator": "StatefulSet coppice", "api": "StatefulSet coppice",
		"worker": "Deployment coppice-worker"}
	for _, s := range m.services {
		selects("Service", s.Metadata, s.Spec.Selector, of[s.Metadata.Labels[componentLabel]])
	}
	for _, s := range m.statefulSets {
		selects("StatefulSet", s.Metadata, s.Spec.Selector.MatchLabels, "StatefulSet "+s.Metadata.Name)
		peers := m.services[s.Spec.ServiceName]
		if peers == nil || peers.Spec.ClusterIP != "None" || !peers.Spec.PublishNotReadyAddresses {
			t.Errorf("the service %s must be headless and publish addresses that are not ready", s.Spec.ServiceName)
		}
		if s.Spec.PodManagementPolicy != "Parallel" {
			t.Errorf("%s: no coordinator is ready before all run, so they must start in parallel", s.Metadata.Name)
		}
		for _, c := range s.Spec.Template.Spec.TopologySpreadConstraints {
			selects("spread of", s.Metadata, c.LabelSelector.MatchLabels, "StatefulSet "+s.Metadata.Name)
		}
		if b := m.budgets[s.Metadata.Name]; b == nil || b.Spec.MaxUnavailable > (s.Spec.Replicas-1)/2 {
			t.Errorf("%s with %d replicas loses its quorum: %+v", s.Metadata.Name, s.Spec.Replicas, b)
		}
	}
	for _, d := range m.deployments {
		selects("Deployment", d.Metadata, d.Spec.Selector.MatchLabels, "Deployment "+d.Metadata.Name)
	}
	for _, b := range m.budgets {
		selects("PodDisruptionBudget", b.Metadata, b.Spec.Selector.MatchLabels, "StatefulSet "+b.Metadata.Name)
	}
	for _, p := range m.policies {
		if got := m.selected(p.Spec.PodSelector.MatchLabels); len(got) == 0 {
			t.Errorf("NetworkPolicy %s selects no pod", p.Metadata.Name)
		}
		component("NetworkPolicy", p.Metadata)
	}
	for _, s := range m.monitors {
		var found []string
		for name, one := range m.services {
			if one.Metadata.Labels.has(s.Spec.Selector.MatchLabels) {
				found = append(found, name)
			}
		}
		if len(found) != 1 || s.Spec.JobLabel != componentLabel {
			t.Errorf("ServiceMonitor %s selects the services %v", s.Metadata.Name, found)
		}
		component("ServiceMonitor", s.Metadata)
	}
	for name, p := range m.pods() {
		if p.Metadata.Labels[nameLabel] != "coppice" || p.Metadata.Labels[componentLabel] == "" {
			t.Errorf("%s has the labels %v", name, p.Metadata.Labels)
		}
	}
}

// flagsOf returns the values that the command line of a container gives to the flags of its command. The grammar of the
// binary parses it.
func flagsOf(t *testing.T, args []string) map[string]string {
	t.Helper()
	var shown struct {
		Values []struct{ Flag, Value, From string }
	}
	out := cmdtest.Works(t, append([]string{"config", "show", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &shown); err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for _, v := range shown.Values {
		found[v.Flag] = v.Value
	}
	return found
}

// serves are the ports of processes as the binary has them, by component and by the name of the port.
var serves = map[string]map[string]int{
	"coordinator": {"http": coordinator.DefaultPort, "raft": coordinator.DefaultPort + 1,
		"nats": coordinator.DefaultPort + 2, "routes": coordinator.DefaultPort + 3},
	"worker": {"http": 7500},
}

// TestCommandLines: the binary parses the arguments of each container. They agree with the ports, folders, names and
// memory of the pod.
func TestCommandLines(t *testing.T) {
	m := all(t)
	for name, p := range m.pods() {
		component := p.Metadata.Labels[componentLabel]
		for _, c := range p.Spec.containers() {
			if c.Image == kubectlImage {
				continue
			}
			if c.Image != ownImage {
				t.Errorf("%s: the image is %s, want %s", name, c.Image, ownImage)
			}
			given := flagsOf(t, c.expand("coppice-0"))
			for _, flag := range []string{"dir", "tls-dir", "ca-dir", "out"} {
				at := given[flag]
				if at != "" && !slices.ContainsFunc(c.VolumeMounts, func(v mount) bool {
					return v.MountPath == at || strings.HasPrefix(at, v.MountPath+"/")
				}) {
					t.Errorf("%s: --%s=%s is in no volume", name, flag, at)
				}
			}
			ports := make(map[string]int)
			for _, one := range c.Ports {
				ports[one.Name] = one.ContainerPort
			}
			if d := cmp.Diff(serves[component], ports); d != "" && serves[component] != nil {
				t.Errorf("%s: ports that are served (-), and in the pod (+):\n%s", name, d)
			}
			listens := map[string]string{"http": "http", "raft": "raft", "nats-listen": "nats", "nats-routes": "routes"}
			if component == "worker" {
				listens = map[string]string{"listen": "http"}
			}
			for flag, port := range listens {
				if want := fmt.Sprintf(":%d", ports[port]); serves[component] != nil && given[flag] != want {
					t.Errorf("%s: --%s=%s, want %s", name, flag, given[flag], want)
				}
			}
		}
	}
	images := kustomizationOf(t, "image/kustomization.yaml").Images
	if len(images) != 2 || images[0].Name != ownImage || images[0].NewTag != version.String ||
		images[1].Name != kubectlImage || images[1].NewTag == "" {
		t.Errorf("the images are %+v, and this version is %s", images, version.String)
	}
	peers(t, m, 3)
	memory(t, m)
	restores(t, m)
}

// restores checks that the pods of a restore write the folders with which the coordinators start.
func restores(t *testing.T, m *manifests) {
	t.Helper()
	s := m.statefulSets["coppice"]
	made := s.Spec.VolumeClaimTemplates[0]
	for i := range s.Spec.Replicas {
		id := fmt.Sprintf("%s-%d", s.Metadata.Name, i)
		p, name := m.plain[fmt.Sprintf("coppice-restore-%d", i)], made.Metadata.Name+"-"+id
		claim := m.claims[name]
		if p == nil || claim == nil {
			t.Fatalf("no pod restores %s in the volume %s", id, name)
		}
		if d := cmp.Diff(made.Spec, claim.Spec); d != "" {
			t.Errorf("%s: in a new cluster (-), and in a restored one (+):\n%s", name, d)
		}
		c := p.Spec.Containers[0]
		got, want := flagsOf(t, c.expand("")), flagsOf(t, s.Spec.Template.Spec.Containers[0].expand(id))
		for _, flag := range []string{"id", "dir", "peers"} {
			if got[flag] != want[flag] {
				t.Errorf("%s: --%s=%s, but the coordinator has %s", p.Metadata.Name, flag, got[flag], want[flag])
			}
		}
		data := p.Spec.Volumes[slices.IndexFunc(p.Spec.Volumes, func(v volume) bool { return v.Name == "data" })]
		if data.PersistentVolumeClaim.ClaimName != name || !c.Stdin || !c.StdinOnce || c.Args[1] != "/dev/stdin" {
			t.Errorf("%s restores %v into %+v", p.Metadata.Name, c.Args, data)
		}
	}
}

// peers checks that the names of a cluster fit the names of its pods, services and certificates.
func peers(t *testing.T, m *manifests, replicas int) {
	t.Helper()
	s := m.statefulSets["coppice"]
	var want []string
	hosts := make(map[string]bool)
	for i := range s.Spec.Replicas {
		id := fmt.Sprintf("%s-%d", s.Metadata.Name, i)
		want = append(want, fmt.Sprintf("%s=%[1]s.%s:%d", id, s.Spec.ServiceName, coordinator.DefaultPort))
		hosts[id] = true
	}
	container := s.Spec.Template.Spec.Containers[0]
	for id := range hosts {
		given := flagsOf(t, container.expand(id))
		if given["peers"] != strings.Join(want, ",") || len(want) != replicas || given["id"] != id ||
			path.Base(given["tls-dir"]) != id {
			t.Errorf("%s is started with %v, want the peers %v", id, given, want)
		}
	}
	d := m.deployments["coppice-worker"]
	given := flagsOf(t, d.Spec.Template.Spec.Containers[0].expand("coppice-worker-5d4f9c-x2x4q"))
	host, port, _ := strings.Cut(given["join"], ":")
	if api := m.services[host]; api == nil || port != strconv.Itoa(api.Spec.Ports[0].Port) {
		t.Errorf("a worker joins %s, which is no service", given["join"])
	}
	for _, svc := range m.services {
		component := svc.Metadata.Labels[componentLabel]
		if component == "api" {
			component = "coordinator"
		}
		for _, one := range svc.Spec.Ports {
			if one.Port != serves[component][one.Name] || one.TargetPort != one.Name {
				t.Errorf("the service %s has the port %+v", svc.Metadata.Name, one)
			}
		}
	}
}

// memory checks that what the flags allow fits into the limits of the pods.
func memory(t *testing.T, m *manifests) {
	t.Helper()
	size := func(text string) int64 {
		n, err := units.Parse(strings.TrimSuffix(text, "B") + "B")
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	coordinators, workers := m.statefulSets["coppice"], m.deployments["coppice-worker"]
	for _, p := range []*template{&coordinators.Spec.Template, &workers.Spec.Template} {
		c := p.Spec.Containers[0]
		heap := size(c.Env[slices.IndexFunc(c.Env, func(e envVar) bool { return e.Name == "GOMEMLIMIT" })].Value)
		limit, given := size(c.Resources.Limits["memory"]), flagsOf(t, c.expand("coppice-0"))
		if heap > limit*9/10 || c.Resources.Requests["memory"] != c.Resources.Limits["memory"] {
			t.Errorf("%s: GOMEMLIMIT is %d, %+v", c.Name, heap, c.Resources)
		}
		number := func(flag string) int64 {
			n, err := strconv.ParseInt(given[flag], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		switch c.Name {
		case "coordinator":
			disk := size(coordinators.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests["storage"])
			if number("jobs")*size(given["max-job-memory"])+size(given["message-memory"]) > heap ||
				size(given["max-blob-bytes"]) > disk*3/4 {
				t.Errorf("jobs of %v do not fit into %d bytes of memory and %d of the disk", given, heap, disk)
			}
		case "worker":
			slots, err := strconv.ParseInt(c.Resources.Limits["cpu"], 10, 64)
			if err != nil || slots*size(given["memory"])+size(given["kept-memory"]) > heap {
				t.Errorf("%d tasks of %v do not fit into %d bytes, %v", slots, given, heap, err)
			}
			volumes := p.Spec.Volumes
			data := volumes[slices.IndexFunc(volumes, func(v volume) bool { return v.Name == "data" })]
			if size(given["cache"]) > size(data.EmptyDir.SizeLimit)*9/10 {
				t.Errorf("--cache=%s does not fit into %s", given["cache"], data.EmptyDir.SizeLimit)
			}
		}
	}
}

// TestServiceVariables: Kubernetes makes variables of the service coppice in the pods of clients, such as COPPICE_PORT.
// None is a flag of the binary.
func TestServiceVariables(t *testing.T) {
	var want []string
	for _, name := range []string{"SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP", "PORT", "PORT_7100_TCP",
		"PORT_7100_TCP_PROTO", "PORT_7100_TCP_PORT", "PORT_7100_TCP_ADDR"} {
		t.Setenv("COPPICE_"+name, "tcp://10.0.0.1:7100")
		want = append(want, "COPPICE_"+name)
	}
	var shown struct {
		Unknown []string `json:"unknown_variables"`
	}
	cmdtest.JSON(t, &shown, "config", "show")
	slices.Sort(want)
	slices.Sort(shown.Unknown)
	if d := cmp.Diff(want, shown.Unknown); d != "" {
		t.Error(d)
	}
}

// TestNetworkPolicies: the policies allow exactly the connections that the processes make, on both sides.
func TestNetworkPolicies(t *testing.T) {
	m := all(t)
	who := map[string]labels{
		"coordinator": m.statefulSets["coppice"].Spec.Template.Metadata.Labels,
		"worker":      m.deployments["coppice-worker"].Spec.Template.Metadata.Labels,
		"client":      {"coppice-client": "true"},
		"prometheus":  {nameLabel: "prometheus"},
		"other":       {nameLabel: "other"},
	}
	c := serves["coordinator"]
	want := map[string][]int{
		"coordinator to coordinator": {c["http"], c["raft"], c["routes"]},
		"worker to coordinator":      {c["http"], c["nats"]},
		"client to coordinator":      {c["http"]},
		"prometheus to coordinator":  {c["http"]},
		"prometheus to worker":       {serves["worker"]["http"]},
	}
	in, out := make(map[string][]int), make(map[string][]int)
	for from := range who {
		for _, to := range []string{"coordinator", "worker"} {
			key := from + " to " + to
			for _, p := range m.policies {
				if who[to].has(p.Spec.PodSelector.MatchLabels) {
					if !slices.Contains(p.Spec.PolicyTypes, "Ingress") {
						t.Errorf("%s bounds no connections to its pods", p.Metadata.Name)
					}
					in[key] = append(in[key], allowed(p.Spec.Ingress, who[from], from == "prometheus")...)
				}
				if who[from].has(p.Spec.PodSelector.MatchLabels) {
					out[key] = append(out[key], allowed(p.Spec.Egress, who[to], false)...)
				}
			}
			if slices.Sort(in[key]); len(in[key]) == 0 {
				delete(in, key)
			}
			if slices.Sort(out[key]); len(out[key]) == 0 {
				delete(out, key)
			}
		}
	}
	if d := cmp.Diff(want, in); d != "" {
		t.Errorf("connections that processes make (-), and that ingress allows (+):\n%s", d)
	}
	for key := range want {
		if from, _, _ := strings.Cut(key, " "); from != "coordinator" && from != "worker" {
			delete(want, key)
		}
	}
	if d := cmp.Diff(want, out); d != "" {
		t.Errorf("connections that processes make (-), and that egress allows (+):\n%s", d)
	}
}

// allowed returns the ports that rules allow with a pod. The ports of names are left out.
func allowed(rules []policyRule, pod labels, elsewhere bool) (ports []int) {
	for _, r := range rules {
		fits := slices.ContainsFunc(slices.Concat(r.From, r.To), func(p peer) bool {
			return pod.has(p.PodSelector.MatchLabels) && elsewhere == (len(p.NamespaceSelector.MatchLabels) > 0)
		})
		for _, p := range r.Ports {
			if fits && p.Protocol == "TCP" {
				ports = append(ports, p.Port)
			}
		}
	}
	return ports
}

// TestRestricted: each pod has the security context of the standard "restricted" of Kubernetes, the user of the image,
// and a root that nobody can write.
func TestRestricted(t *testing.T) {
	user := regexp.MustCompile(`(?m)^USER (\d+):(\d+)$`).FindStringSubmatch(read(t, "../Dockerfile"))
	for name, p := range all(t).pods() {
		s := p.Spec.SecurityContext
		if !s.RunAsNonRoot || strconv.Itoa(s.RunAsUser) != user[1] || strconv.Itoa(s.RunAsGroup) != user[2] ||
			s.FSGroup != s.RunAsGroup || s.SeccompProfile.Type != "RuntimeDefault" {
			t.Errorf("%s: %+v, and the user of the image is %v", name, s, user[1:])
		}
		if p.Spec.EnableServiceLinks == nil || *p.Spec.EnableServiceLinks {
			t.Errorf("%s gets the variables of services", name)
		}
		if no := p.Spec.AutomountServiceAccountToken; (no == nil || *no) != (p.Spec.ServiceAccountName != "") {
			t.Errorf("%s: who does not use the API of Kubernetes needs no token", name)
		}
		for _, c := range p.Spec.containers() {
			x := c.SecurityContext
			if x.AllowPrivilegeEscalation == nil || *x.AllowPrivilegeEscalation || !x.ReadOnlyRootFilesystem ||
				!slices.Equal(x.Capabilities.Drop, []string{"ALL"}) {
				t.Errorf("%s: %s: %+v", name, c.Name, x)
			}
			if c.Resources.Requests["cpu"] == "" || c.Resources.Requests["memory"] == "" ||
				c.Resources.Limits["memory"] == "" {
				t.Errorf("%s: %s: %+v", name, c.Name, c.Resources)
			}
		}
	}
}

// TestReferences: what a pod mounts exists, with the keys that it needs, and the certificates have the names of the
// processes that use them.
func TestReferences(t *testing.T) {
	m := all(t)
	made := secretsOf(t, m)
	for name, p := range m.pods() {
		volumes := make(map[string]bool)
		for _, v := range p.Spec.Volumes {
			volumes[v.Name] = true
			if v.Secret == nil {
				continue
			}
			if v.Secret.DefaultMode != 0o440 {
				t.Errorf("%s: the mode of %s is %o, but only the group of the pod may read it", name, v.Name,
					v.Secret.DefaultMode)
			}
			keys, ok := made[v.Secret.SecretName]
			if !ok {
				t.Errorf("%s: no job makes the secret %s", name, v.Secret.SecretName)
			}
			for _, item := range v.Secret.Items {
				if !slices.Contains(keys, item.Key) {
					t.Errorf("%s: the secret %s has no %s: %v", name, v.Secret.SecretName, item.Key, keys)
				}
			}
		}
		for _, v := range p.Spec.Volumes {
			if v.ConfigMap != nil && m.configMaps[v.ConfigMap.Name] == nil {
				t.Errorf("%s: there is no ConfigMap %s", name, v.ConfigMap.Name)
			}
		}
		for _, c := range m.statefulSets {
			for _, claim := range c.Spec.VolumeClaimTemplates {
				volumes[claim.Metadata.Name] = volumes[claim.Metadata.Name] || name == "StatefulSet "+c.Metadata.Name
			}
		}
		for _, c := range p.Spec.containers() {
			for _, v := range c.VolumeMounts {
				if !volumes[v.Name] {
					t.Errorf("%s: there is no volume %s", name, v.Name)
				}
			}
		}
		if a := p.Spec.ServiceAccountName; a != "" && m.serviceAccounts[a] == nil {
			t.Errorf("%s: there is no account %s", name, a)
		}
	}
	for name, b := range m.roleBindings {
		if m.roles[b.RoleRef.Name] == nil || len(b.Subjects) != 1 || m.serviceAccounts[b.Subjects[0].Name] == nil {
			t.Errorf("%s: %+v", name, b)
		}
	}
	changes := slices.DeleteFunc(names(made), func(name string) bool { return name == "coppice-authority" })
	for name, r := range m.roles {
		if len(r.Rules) != 2 || !slices.Equal(r.Rules[0].Verbs, []string{"create"}) ||
			!slices.Equal(slices.Sorted(slices.Values(r.Rules[1].ResourceNames)), changes) {
			t.Errorf("%s may change %+v, want %v", name, r.Rules, changes)
		}
	}
	certificates(t, m)
	for name, s := range m.monitors {
		for _, e := range s.Spec.Endpoints {
			for _, ref := range []keyRef{e.TLSConfig.CA.Secret, e.TLSConfig.Cert.Secret, e.TLSConfig.KeySecret} {
				if !slices.Contains(made[ref.Name], ref.Key) || e.Scheme != "https" || e.Path != "/metrics" {
					t.Errorf("%s: %+v of %v", name, ref, made)
				}
			}
		}
	}
}

// certificates checks that both jobs issue the same certificates, one for each process.
func certificates(t *testing.T, m *manifests) {
	t.Helper()
	first := m.jobs["coppice-certificates"].Spec.Template.Spec
	again := m.cronJobs["coppice-certificates"].Spec.JobTemplate.Spec.Template.Spec
	given, renewed := flagsOf(t, first.InitContainers[0].Args), flagsOf(t, again.InitContainers[0].Args)
	for _, flag := range []string{"coordinators", "pools", "users", "name", "valid"} {
		if given[flag] != renewed[flag] {
			t.Errorf("--%s is %q at first, and %q later", flag, given[flag], renewed[flag])
		}
	}
	host := m.monitors["coppice-coordinator"].Spec.Endpoints[0].TLSConfig.ServerName
	var ids []string
	for i := range m.statefulSets["coppice"].Spec.Replicas {
		ids = append(ids, fmt.Sprintf("coppice-%d=%s", i, host))
	}
	if want := strings.Join(ids, ","); given["coordinators"] != want {
		t.Errorf("--coordinators=%s, want %s", given["coordinators"], want)
	}
	if given["pools"] != "coppice-worker" || m.deployments[given["pools"]] == nil ||
		m.monitors["coppice-worker"].Spec.Endpoints[0].TLSConfig.ServerName != given["pools"] {
		t.Errorf("--pools=%s is not the name of the pods of workers", given["pools"])
	}
	if !slices.Equal(first.Containers[0].Args, again.Containers[0].Args) {
		t.Errorf("the jobs store secrets by %v and %v", first.Containers[0].Args, again.Containers[0].Args)
	}
}

// secretsOf returns the keys of the secrets that the first job makes.
func secretsOf(t *testing.T, m *manifests) map[string][]string {
	t.Helper()
	found := make(map[string][]string)
	var k kustomization
	strict(t, "coppice-certificates", m.configMaps["coppice-certificates"].Data["kustomization.yaml"], &k)
	for _, g := range k.SecretGenerator {
		for _, f := range g.Files {
			key, _, _ := strings.Cut(f, "=")
			found[g.Name] = append(found[g.Name], key)
		}
	}
	if !k.GeneratorOptions.DisableNameSuffixHash {
		t.Error("the names of secrets change with their content")
	}
	for _, c := range m.jobs["coppice-certificates"].Spec.Template.Spec.InitContainers[1:] {
		if name, files := createdSecret(t, c.Args); name != "" {
			for _, f := range files {
				found[name] = append(found[name], path.Base(f))
			}
		}
	}
	if got := found["coppice-authority"]; !slices.Equal(got, []string{certs.AuthorityFile, certs.AuthorityKey}) {
		t.Errorf("the secret of the authority has %v", got)
	}
	return found
}

// createdSecret returns the name and the files of kubectl create secret.
func createdSecret(t *testing.T, args []string) (name string, files []string) {
	t.Helper()
	if len(args) < 4 || !slices.Equal(args[:3], []string{"create", "secret", "generic"}) {
		t.Fatalf("want kubectl create secret generic, got %q", args)
	}
	for _, arg := range args[4:] {
		file, ok := strings.CutPrefix(arg, "--from-file=")
		if !ok {
			t.Fatalf("want only --from-file, got %q", arg)
		}
		files = append(files, file)
	}
	return args[3], files
}

// TestRules: the alerts for the Prometheus Operator are the alerts of Prometheus. With -update, it writes them.
func TestRules(t *testing.T) {
	_, groups, found := strings.Cut(read(t, "../prometheus/rules.yml"), "\ngroups:\n")
	if !found {
		t.Fatal("rules.yml has no groups")
	}
	const file = "monitoring/rules.yaml"
	had := read(t, file)
	head, _, found := strings.Cut(had, "\n  groups:\n")
	if !found {
		t.Fatalf("%s has no groups", file)
	}
	want := head + "\n  groups:\n" + regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(groups, "  $1")
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if had != want {
		t.Errorf("%s differs from ../prometheus/rules.yml; run: go test ./deploy/kubernetes -run TestRules -update", file)
	}
	if r := all(t).rules["coppice"]; len(r.Spec.Groups) == 0 {
		t.Error("there are no alerts")
	}
}
