// Package kubernetes checks the manifests of this folder against each other and against the binary.
//
// The types below have the fields of Kubernetes that the manifests use. Any other field is refused, such as one that is
// misspelt. The manifests were also decoded strictly with the types of k8s.io/api v0.34 and of the Prometheus Operator
// v0.92, which this module does not need otherwise.
package kubernetes

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

type labels map[string]string

// has reports whether l has all labels of a selector. An empty selector would select everything, so it has none.
func (l labels) has(selector labels) bool {
	for k, v := range selector {
		if l[k] != v {
			return false
		}
	}
	return len(selector) > 0
}

type meta struct {
	Name        string `yaml:"name"`
	Namespace   string `yaml:"namespace"`
	Labels      labels `yaml:"labels"`
	Annotations labels `yaml:"annotations"`
}

// Object is what every object has. It is exported for the decoder.
type Object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   meta   `yaml:"metadata"`
}

type matcher struct {
	MatchLabels labels `yaml:"matchLabels"`
}

type envVar struct {
	Name      string `yaml:"name"`
	Value     string `yaml:"value"`
	ValueFrom *struct {
		FieldRef struct {
			FieldPath string `yaml:"fieldPath"`
		} `yaml:"fieldRef"`
	} `yaml:"valueFrom"`
}

type probe struct {
	HTTPGet struct {
		Path   string `yaml:"path"`
		Port   string `yaml:"port"`
		Scheme string `yaml:"scheme"`
	} `yaml:"httpGet"`
	PeriodSeconds    int `yaml:"periodSeconds"`
	TimeoutSeconds   int `yaml:"timeoutSeconds"`
	FailureThreshold int `yaml:"failureThreshold"`
}

type container struct {
	Name  string   `yaml:"name"`
	Image string   `yaml:"image"`
	Args  []string `yaml:"args"`
	Env   []envVar `yaml:"env"`
	Ports []struct {
		Name          string `yaml:"name"`
		ContainerPort int    `yaml:"containerPort"`
	} `yaml:"ports"`
	StartupProbe   *probe `yaml:"startupProbe"`
	LivenessProbe  *probe `yaml:"livenessProbe"`
	ReadinessProbe *probe `yaml:"readinessProbe"`
	Resources      struct {
		Requests labels `yaml:"requests"`
		Limits   labels `yaml:"limits"`
	} `yaml:"resources"`
	SecurityContext struct {
		AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
		Capabilities             struct {
			Drop []string `yaml:"drop"`
		} `yaml:"capabilities"`
	} `yaml:"securityContext"`
	VolumeMounts []mount `yaml:"volumeMounts"`
	Stdin        bool    `yaml:"stdin"`
	StdinOnce    bool    `yaml:"stdinOnce"`
}

type mount struct {
	Name      string `yaml:"name"`
	MountPath string `yaml:"mountPath"`
	SubPath   string `yaml:"subPath"`
	ReadOnly  bool   `yaml:"readOnly"`
}

type volume struct {
	Name   string `yaml:"name"`
	Secret *struct {
		SecretName  string `yaml:"secretName"`
		DefaultMode int    `yaml:"defaultMode"`
		Items       []struct {
			Key  string `yaml:"key"`
			Path string `yaml:"path"`
		} `yaml:"items"`
	} `yaml:"secret"`
	ConfigMap *struct {
		Name string `yaml:"name"`
	} `yaml:"configMap"`
	EmptyDir *struct {
		Medium    string `yaml:"medium"`
		SizeLimit string `yaml:"sizeLimit"`
	} `yaml:"emptyDir"`
	PersistentVolumeClaim *struct {
		ClaimName string `yaml:"claimName"`
	} `yaml:"persistentVolumeClaim"`
}

type podSpec struct {
	ServiceAccountName            string `yaml:"serviceAccountName"`
	AutomountServiceAccountToken  *bool  `yaml:"automountServiceAccountToken"`
	EnableServiceLinks            *bool  `yaml:"enableServiceLinks"`
	RestartPolicy                 string `yaml:"restartPolicy"`
	TerminationGracePeriodSeconds int    `yaml:"terminationGracePeriodSeconds"`
	TopologySpreadConstraints     []struct {
		MaxSkew           int     `yaml:"maxSkew"`
		TopologyKey       string  `yaml:"topologyKey"`
		WhenUnsatisfiable string  `yaml:"whenUnsatisfiable"`
		LabelSelector     matcher `yaml:"labelSelector"`
	} `yaml:"topologySpreadConstraints"`
	SecurityContext struct {
		RunAsNonRoot        bool   `yaml:"runAsNonRoot"`
		RunAsUser           int    `yaml:"runAsUser"`
		RunAsGroup          int    `yaml:"runAsGroup"`
		FSGroup             int    `yaml:"fsGroup"`
		FSGroupChangePolicy string `yaml:"fsGroupChangePolicy"`
		SeccompProfile      struct {
			Type string `yaml:"type"`
		} `yaml:"seccompProfile"`
	} `yaml:"securityContext"`
	InitContainers []container `yaml:"initContainers"`
	Containers     []container `yaml:"containers"`
	Volumes        []volume    `yaml:"volumes"`
}

type template struct {
	Metadata meta    `yaml:"metadata"`
	Spec     podSpec `yaml:"spec"`
}

type claimSpec struct {
	AccessModes []string `yaml:"accessModes"`
	Resources   struct {
		Requests labels `yaml:"requests"`
	} `yaml:"resources"`
}

type claimTemplate struct {
	Metadata meta      `yaml:"metadata"`
	Spec     claimSpec `yaml:"spec"`
}

type claim struct {
	Object `yaml:",inline"`
	Spec   claimSpec `yaml:"spec"`
}

type pod struct {
	Object `yaml:",inline"`
	Spec   podSpec `yaml:"spec"`
}

type jobSpec struct {
	BackoffLimit *int     `yaml:"backoffLimit"`
	Template     template `yaml:"template"`
}

type service struct {
	Object `yaml:",inline"`
	Spec   struct {
		ClusterIP                string `yaml:"clusterIP"`
		PublishNotReadyAddresses bool   `yaml:"publishNotReadyAddresses"`
		Selector                 labels `yaml:"selector"`
		Ports                    []struct {
			Name       string `yaml:"name"`
			Port       int    `yaml:"port"`
			TargetPort string `yaml:"targetPort"`
		} `yaml:"ports"`
	} `yaml:"spec"`
}

type budget struct {
	Object `yaml:",inline"`
	Spec   struct {
		MaxUnavailable int     `yaml:"maxUnavailable"`
		Selector       matcher `yaml:"selector"`
	} `yaml:"spec"`
}

type statefulSet struct {
	Object `yaml:",inline"`
	Spec   struct {
		ServiceName          string          `yaml:"serviceName"`
		Replicas             int             `yaml:"replicas"`
		PodManagementPolicy  string          `yaml:"podManagementPolicy"`
		MinReadySeconds      int             `yaml:"minReadySeconds"`
		Selector             matcher         `yaml:"selector"`
		Template             template        `yaml:"template"`
		VolumeClaimTemplates []claimTemplate `yaml:"volumeClaimTemplates"`
	} `yaml:"spec"`
}

type deployment struct {
	Object `yaml:",inline"`
	Spec   struct {
		Replicas int      `yaml:"replicas"`
		Selector matcher  `yaml:"selector"`
		Template template `yaml:"template"`
	} `yaml:"spec"`
}

type job struct {
	Object `yaml:",inline"`
	Spec   jobSpec `yaml:"spec"`
}

type cronJob struct {
	Object `yaml:",inline"`
	Spec   struct {
		Schedule          string `yaml:"schedule"`
		ConcurrencyPolicy string `yaml:"concurrencyPolicy"`
		JobTemplate       struct {
			Spec jobSpec `yaml:"spec"`
		} `yaml:"jobTemplate"`
	} `yaml:"spec"`
}

type serviceAccount struct {
	Object `yaml:",inline"`
}

type configMap struct {
	Object `yaml:",inline"`
	Data   map[string]string `yaml:"data"`
}

type secret struct {
	Object `yaml:",inline"`
	Type   string            `yaml:"type"`
	Data   map[string]string `yaml:"data"` // in base64
}

type role struct {
	Object `yaml:",inline"`
	Rules  []struct {
		APIGroups     []string `yaml:"apiGroups"`
		Resources     []string `yaml:"resources"`
		ResourceNames []string `yaml:"resourceNames"`
		Verbs         []string `yaml:"verbs"`
	} `yaml:"rules"`
}

type roleBinding struct {
	Object  `yaml:",inline"`
	RoleRef struct {
		APIGroup string `yaml:"apiGroup"`
		Kind     string `yaml:"kind"`
		Name     string `yaml:"name"`
	} `yaml:"roleRef"`
	Subjects []struct {
		Kind      string `yaml:"kind"`
		Name      string `yaml:"name"`
		Namespace string `yaml:"namespace"`
	} `yaml:"subjects"`
}

type peer struct {
	PodSelector       matcher `yaml:"podSelector"`
	NamespaceSelector matcher `yaml:"namespaceSelector"`
}

type policyRule struct {
	From  []peer `yaml:"from"`
	To    []peer `yaml:"to"`
	Ports []struct {
		Protocol string `yaml:"protocol"`
		Port     int    `yaml:"port"`
	} `yaml:"ports"`
}

type networkPolicy struct {
	Object `yaml:",inline"`
	Spec   struct {
		PodSelector matcher      `yaml:"podSelector"`
		PolicyTypes []string     `yaml:"policyTypes"`
		Ingress     []policyRule `yaml:"ingress"`
		Egress      []policyRule `yaml:"egress"`
	} `yaml:"spec"`
}

type keyRef struct {
	Name string `yaml:"name"`
	Key  string `yaml:"key"`
}

type serviceMonitor struct {
	Object `yaml:",inline"`
	Spec   struct {
		JobLabel  string  `yaml:"jobLabel"`
		Selector  matcher `yaml:"selector"`
		Endpoints []struct {
			Port      string `yaml:"port"`
			Scheme    string `yaml:"scheme"`
			Path      string `yaml:"path"`
			Interval  string `yaml:"interval"`
			TLSConfig struct {
				CA struct {
					Secret keyRef `yaml:"secret"`
				} `yaml:"ca"`
				Cert struct {
					Secret keyRef `yaml:"secret"`
				} `yaml:"cert"`
				KeySecret  keyRef `yaml:"keySecret"`
				ServerName string `yaml:"serverName"`
			} `yaml:"tlsConfig"`
			Relabelings []struct {
				SourceLabels []string `yaml:"sourceLabels"`
				TargetLabel  string   `yaml:"targetLabel"`
			} `yaml:"relabelings"`
		} `yaml:"endpoints"`
	} `yaml:"spec"`
}

type prometheusRule struct {
	Object `yaml:",inline"`
	Spec   struct {
		Groups []any `yaml:"groups"`
	} `yaml:"spec"`
}

// kustomization is what a file kustomization.yaml of this folder may have.
type kustomization struct {
	Object     `yaml:",inline"`
	Namespace  string   `yaml:"namespace"`
	Resources  []string `yaml:"resources"`
	Components []string `yaml:"components"`
	Patches    []struct {
		Path string `yaml:"path"`
	} `yaml:"patches"`
	Images []struct {
		Name    string `yaml:"name"`
		NewName string `yaml:"newName"`
		NewTag  string `yaml:"newTag"`
	} `yaml:"images"`
	GeneratorOptions struct {
		DisableNameSuffixHash bool `yaml:"disableNameSuffixHash"`
	} `yaml:"generatorOptions"`
	ConfigMapGenerator []generator `yaml:"configMapGenerator"`
	SecretGenerator    []generator `yaml:"secretGenerator"`
}

type generator struct {
	Name  string   `yaml:"name"`
	Files []string `yaml:"files"` // KEY=PATH
}

// manifests are objects of Kubernetes, by kind and by name.
type manifests struct {
	services        map[string]*service
	budgets         map[string]*budget
	statefulSets    map[string]*statefulSet
	deployments     map[string]*deployment
	jobs            map[string]*job
	plain           map[string]*pod
	claims          map[string]*claim
	cronJobs        map[string]*cronJob
	serviceAccounts map[string]*serviceAccount
	configMaps      map[string]*configMap
	secrets         map[string]*secret
	roles           map[string]*role
	roleBindings    map[string]*roleBinding
	policies        map[string]*networkPolicy
	monitors        map[string]*serviceMonitor
	rules           map[string]*prometheusRule
}

// strict decodes YAML. A key that the value lacks is an error.
func strict(t *testing.T, where, text string, into any) {
	t.Helper()
	if err := yaml.NewDecoder(strings.NewReader(text), yaml.Strict()).Decode(into); err != nil {
		t.Fatalf("%s: %v", where, err)
	}
}

// keep decodes an object strictly and adds it to the objects of its kind.
func keep[T any](t *testing.T, where, text, name string, all *map[string]*T) {
	t.Helper()
	v := new(T)
	strict(t, where, text, v)
	if *all == nil {
		*all = make(map[string]*T)
	}
	if (*all)[name] != nil {
		t.Fatalf("%s: %s is there twice", where, name)
	}
	(*all)[name] = v
}

// add decodes all documents of a text.
func (m *manifests) add(t *testing.T, where, text string) {
	t.Helper()
	for doc := range strings.SplitSeq(text, "\n---\n") {
		var o Object
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		name := o.Metadata.Name
		switch o.APIVersion + " " + o.Kind {
		case "v1 Service":
			keep(t, where, doc, name, &m.services)
		case "policy/v1 PodDisruptionBudget":
			keep(t, where, doc, name, &m.budgets)
		case "apps/v1 StatefulSet":
			keep(t, where, doc, name, &m.statefulSets)
		case "apps/v1 Deployment":
			keep(t, where, doc, name, &m.deployments)
		case "batch/v1 Job":
			keep(t, where, doc, name, &m.jobs)
		case "batch/v1 CronJob":
			keep(t, where, doc, name, &m.cronJobs)
		case "v1 Pod":
			keep(t, where, doc, name, &m.plain)
		case "v1 PersistentVolumeClaim":
			keep(t, where, doc, name, &m.claims)
		case "v1 ServiceAccount":
			keep(t, where, doc, name, &m.serviceAccounts)
		case "v1 ConfigMap":
			keep(t, where, doc, name, &m.configMaps)
		case "v1 Secret":
			keep(t, where, doc, name, &m.secrets)
		case "rbac.authorization.k8s.io/v1 Role":
			keep(t, where, doc, name, &m.roles)
		case "rbac.authorization.k8s.io/v1 RoleBinding":
			keep(t, where, doc, name, &m.roleBindings)
		case "networking.k8s.io/v1 NetworkPolicy":
			keep(t, where, doc, name, &m.policies)
		case "monitoring.coreos.com/v1 ServiceMonitor":
			keep(t, where, doc, name, &m.monitors)
		case "monitoring.coreos.com/v1 PrometheusRule":
			keep(t, where, doc, name, &m.rules)
		default:
			t.Fatalf("%s: %s %s is an object that no test knows", where, o.APIVersion, o.Kind)
		}
	}
}

// folder adds the objects of a folder without patches, as its kustomization.yaml names them.
func (m *manifests) folder(t *testing.T, dir string) {
	t.Helper()
	k := kustomizationOf(t, filepath.Join(dir, "kustomization.yaml"))
	if len(k.Patches) > 0 || len(k.Components) > 0 && !slices.Equal(k.Components, []string{"../image"}) {
		t.Fatalf("%s has components or patches, which only kubectl applies", dir)
	}
	for _, name := range k.Resources {
		m.add(t, name, read(t, filepath.Join(dir, name)))
	}
	for _, g := range k.ConfigMapGenerator {
		if !k.GeneratorOptions.DisableNameSuffixHash {
			t.Errorf("%s: the name of %s changes with its content", dir, g.Name)
		}
		c := &configMap{Data: make(map[string]string)}
		for _, f := range g.Files {
			key, path, _ := strings.Cut(f, "=")
			c.Data[key] = read(t, filepath.Join(dir, path))
		}
		if m.configMaps == nil {
			m.configMaps = make(map[string]*configMap)
		}
		m.configMaps[g.Name] = c
	}
}

// kustomizationOf decodes a file.
func kustomizationOf(t *testing.T, path string) (k kustomization) {
	t.Helper()
	strict(t, path, read(t, path), &k)
	return k
}

// all returns the objects of this folder, without overlays.
func all(t *testing.T) *manifests {
	t.Helper()
	m := new(manifests)
	for _, dir := range []string{"base", "certificates", "monitoring", "restore"} {
		m.folder(t, dir)
	}
	return m
}

// pods returns the templates of all pods, by kind and name.
func (m *manifests) pods() map[string]*template {
	found := make(map[string]*template)
	for name, s := range m.statefulSets {
		found["StatefulSet "+name] = &s.Spec.Template
	}
	for name, d := range m.deployments {
		found["Deployment "+name] = &d.Spec.Template
	}
	for name, j := range m.jobs {
		found["Job "+name] = &j.Spec.Template
	}
	for name, p := range m.plain {
		found["Pod "+name] = &template{Metadata: p.Metadata, Spec: p.Spec}
	}
	for name, c := range m.cronJobs {
		found["CronJob "+name] = &c.Spec.JobTemplate.Spec.Template
	}
	return found
}

// selected returns the names of the pods with the labels of a selector.
func (m *manifests) selected(selector labels) (names []string) {
	for name, p := range m.pods() {
		if p.Metadata.Labels.has(selector) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// containers returns all containers of a pod.
func (p *podSpec) containers() []container { return slices.Concat(p.InitContainers, p.Containers) }

// expand returns the arguments of a container in a pod of this name. Variables replace $(NAME), as in Kubernetes.
func (c *container) expand(pod string) (args []string) {
	var pairs []string
	for _, e := range c.Env {
		value := e.Value
		if e.ValueFrom != nil && e.ValueFrom.FieldRef.FieldPath == "metadata.name" {
			value = pod
		}
		pairs = append(pairs, "$("+e.Name+")", value)
	}
	replacer := strings.NewReplacer(pairs...)
	for _, arg := range c.Args {
		args = append(args, replacer.Replace(arg))
	}
	return args
}

// read returns the text of a file.
func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// names returns the sorted keys of a map.
func names[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
