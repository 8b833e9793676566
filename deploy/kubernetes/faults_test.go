package kubernetes

import (
	"encoding/pem"
	"fmt"
	"maps"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"dedupledger/internal/app/config"
)

// closing is what internal/app takes at most, behind processor.shutdown_grace,
// to close what is open.
const closing = 10 * time.Second

// faults is everything that does not fit.
func (m *manifests) faults(t *testing.T) (found []string) {
	t.Helper()
	say := func(wrong bool, format string, args ...any) {
		if wrong {
			found = append(found, fmt.Sprintf(format, args...))
		}
	}
	m.labels(say)
	pods := m.pods()
	for _, p := range pods {
		p.safe(say)
		p.runs(t, say)
	}
	filter := &pods[0]
	file, ok := m.config.Data["dedup.yaml"]
	say(!ok, "the ConfigMap has no dedup.yaml")
	cfg, text := filter.load(t, file, say)
	if cfg == nil {
		return found
	}
	m.grace(cfg, say)
	m.ports(cfg, say)
	m.waysOut(cfg, say)
	say(text["processor.slot"] != "$ordinal", "processor.slot is %s: the pods of a StatefulSet have numbers", text["processor.slot"])
	return found
}

type sayer func(wrong bool, format string, args ...any)

// pod is one of the pod templates.
type pod struct {
	name      string
	labels    map[string]string
	spec      *core.PodSpec
	container *core.Container
}

// pods are the filter's and then those of the jobs.
func (m *manifests) pods() []pod {
	all := []pod{{m.filter.Name, m.filter.Spec.Template.Labels, &m.filter.Spec.Template.Spec, nil}}
	for i := range m.jobs {
		j := &m.jobs[i]
		all = append(all, pod{j.Name, j.Spec.Template.Labels, &j.Spec.Template.Spec, nil})
	}
	for i := range all {
		all[i].container = &all[i].spec.Containers[0]
	}
	return all
}

// labels: who is meant by each selector.
func (m *manifests) labels(say sayer) {
	filter := m.filter.Spec.Selector.MatchLabels
	for _, p := range m.pods() {
		isFilter := p.name == m.filter.Name
		for name, selector := range map[string]map[string]string{
			"StatefulSet": filter, "Service": m.service.Spec.Selector, "PodDisruptionBudget": m.budget.Spec.Selector.MatchLabels,
			"topologySpreadConstraints": m.filter.Spec.Template.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels,
		} {
			say(selects(selector, p.labels) != isFilter, "labels: the selector of %s is not that of the filter alone (%s)", name, p.name)
		}
		say(!selects(m.network.Spec.PodSelector.MatchLabels, p.labels), "labels: the NetworkPolicy does not select %s", p.name)
	}
	say(m.filter.Spec.ServiceName != m.service.Name || m.service.Spec.ClusterIP != core.ClusterIPNone || m.service.Spec.Type != "",
		"the Service is not the headless one that the StatefulSet names")
}

func selects(selector, labels map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return len(selector) > 0
}

var image = regexp.MustCompile(`^[^:]+:\d+\.\d+\.\d+$`)

// safe: not root, nothing to write to, bounded, one version everywhere.
func (p *pod) safe(say sayer) {
	c, all := p.container, p.spec.SecurityContext
	own := c.SecurityContext
	say(len(p.spec.Containers) != 1, "%s: more containers than one", p.name)
	say(all.RunAsNonRoot == nil || !*all.RunAsNonRoot || *all.RunAsUser == 0 || !*own.ReadOnlyRootFilesystem ||
		*own.AllowPrivilegeEscalation || !slices.Equal(own.Capabilities.Drop, []core.Capability{"ALL"}), "%s: may do as root does", p.name)
	say(*p.spec.AutomountServiceAccountToken || *p.spec.EnableServiceLinks, "%s: is told of the cluster what it does not need", p.name)
	say(!image.MatchString(c.Image) || c.Image != "dedup-ledger:0.1.0", "%s: image %s: one version everywhere", p.name, c.Image)
	memory := c.Resources.Limits.Memory()
	say(memory.IsZero() || c.Resources.Requests.Cpu().IsZero(), "%s: no resources", p.name)
	for _, e := range c.Env {
		limit, err := resource.ParseQuantity(strings.TrimSuffix(e.Value, "B"))
		say(e.Name == "GOMEMLIMIT" && (err != nil || limit.Cmp(*memory) >= 0), "%s: GOMEMLIMIT %s is not below the limit %s", p.name, e.Value, memory)
	}
}

// load reads the configuration as the program would in this pod: files of
// secrets are there where the pod mounts them. text is each value as written.
func (p *pod) load(t *testing.T, file string, say sayer) (cfg *config.Config, text map[string]string) {
	t.Helper()
	root := t.TempDir()
	broker := httptest.NewTLSServer(nil)
	defer broker.Close()
	signer := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: broker.Certificate().Raw})
	for _, name := range p.mounted() {
		text := []byte("x\n")
		if path.Ext(name) == ".crt" {
			text = signer
		}
		at := filepath.Join(root, name)
		if os.MkdirAll(filepath.Dir(at), 0o700) != nil || os.WriteFile(at, text, 0o600) != nil {
			say(true, "%s cannot be made", at)
		}
	}
	file = strings.ReplaceAll(file, "/etc/dedup/", root+"/etc/dedup/")
	name := filepath.Join(root, "dedup.yaml")
	say(os.WriteFile(name, []byte(file), 0o600) != nil, "the configuration cannot be written")
	cfg, warnings, err := config.Load(name, nil)
	say(err != nil || len(warnings) > 0, "dedup.yaml: %v %v", err, warnings)
	text = map[string]string{}
	if effective, _, err := config.Explain(name, nil); err == nil {
		for _, v := range effective.Values {
			text[v.Path] = v.Written.Text
		}
	}
	return cfg, text
}

// mounted are the files of secrets in the pod.
func (p *pod) mounted() (all []string) {
	at := map[string]string{}
	for _, m := range p.container.VolumeMounts {
		at[m.Name] = m.MountPath
	}
	for _, v := range p.spec.Volumes {
		var items []core.KeyToPath
		if v.Secret != nil {
			items = v.Secret.Items
		}
		if v.Projected != nil {
			for _, s := range v.Projected.Sources {
				items = append(items, s.Secret.Items...)
			}
		}
		for _, i := range items {
			all = append(all, path.Join(at[v.Name], i.Path))
		}
	}
	return all
}

// runs: the program knows the arguments and the variables.
func (p *pod) runs(t *testing.T, say sayer) {
	t.Helper()
	out, err := help(t, p.container.Args)
	say(err != nil, "%s: dedup %v: %v: %s", p.name, p.container.Args, err, out)
	for _, e := range p.container.Env {
		known := e.Name == "GOMEMLIMIT" || slices.ContainsFunc(config.Keys(), func(k config.Key) bool { return k.Env == e.Name })
		say(!known, "%s: no key has the variable %s", p.name, e.Name)
		file := strings.HasSuffix(e.Name, "_FILE")
		say(file && !slices.Contains(p.mounted(), e.Value), "%s: %s: no such file in the pod: %s", p.name, e.Name, e.Value)
	}
}

func (m *manifests) grace(cfg *config.Config, say sayer) {
	seconds := time.Duration(*m.filter.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
	needs := cfg.Processor.ShutdownGrace + closing
	say(seconds <= needs, "terminationGracePeriodSeconds is %s, processor.shutdown_grace and the closing take up to %s", seconds, needs)
}

// ports: probes, the Service and the scrape go to http.ops_listen.
func (m *manifests) ports(cfg *config.Config, say sayer) {
	c := m.filter.Spec.Template.Spec.Containers[0]
	_, ops, err := net.SplitHostPort(cfg.HTTP.OpsListen)
	number, numberErr := strconv.Atoi(ops)
	say(err != nil || numberErr != nil, "http.ops_listen: %v %v", err, numberErr)
	port := c.Ports[0]
	say(port.Name != "ops" || int(port.ContainerPort) != number, "port ops is %d, http.ops_listen %s", port.ContainerPort, cfg.HTTP.OpsListen)
	for want, probe := range map[string]*core.Probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
		say(probe.HTTPGet.Path != want || probe.HTTPGet.Port != intstr.FromString("ops"), "probe %s is at %s, port %s", want, probe.HTTPGet.Path, probe.HTTPGet.Port.String())
	}
	say(m.service.Spec.Ports[0].TargetPort != intstr.FromString("ops") || int(m.service.Spec.Ports[0].Port) != number, "the Service's port is not ops")
	marks := m.filter.Spec.Template.Annotations
	say(marks["prometheus.io/port"] != ops || marks["prometheus.io/path"] != "/metrics" || marks["prometheus.io/scrape"] != "true", "prometheus.io/port is not %s: %v", ops, marks)
	in := m.network.Spec.Ingress[0].Ports[0].Port
	say(*in != intstr.FromString("ops"), "the NetworkPolicy lets in port %s", in.String())
}

// waysOut: the NetworkPolicy lets out to every port of the configuration.
func (m *manifests) waysOut(cfg *config.Config, say sayer) {
	open := map[string]bool{}
	for _, e := range m.network.Spec.Egress {
		for _, p := range e.Ports {
			open[p.Port.String()] = true
		}
	}
	addresses := slices.Concat(cfg.Kafka.Brokers, cfg.Redis.Addrs)
	if u, err := url.Parse(cfg.Postgres.URL.Reveal()); err == nil {
		addresses = append(addresses, u.Host)
	}
	for _, a := range addresses {
		_, port, err := net.SplitHostPort(a)
		say(err != nil || !open[port], "no way out to port %s (%s): %v", port, a, slices.Sorted(maps.Keys(open)))
	}
}
