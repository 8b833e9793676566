// Package kubernetes holds the manifests to the types of Kubernetes and to the
// configuration that they carry.
package kubernetes

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// manifests are the objects of this folder.
type manifests struct {
	filter  apps.StatefulSet
	jobs    []batch.Job
	config  core.ConfigMap
	service core.Service
	budget  policy.PodDisruptionBudget
	network networking.NetworkPolicy
}

// files are the manifests as text, by name.
func files(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("*.yaml")
	require.NoError(t, err)
	all := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		all[name] = string(text)
	}
	require.Len(t, all, 7)
	return all
}

// decode reads each file as the type it says it is, and nothing in it may be
// unknown or written twice.
func decode(files map[string]string) (*manifests, error) {
	m := &manifests{}
	var migrate, topics batch.Job
	into := map[string]any{
		"statefulset.yaml": &m.filter, "migrate-job.yaml": &migrate, "topics-job.yaml": &topics, "configmap.yaml": &m.config,
		"service.yaml": &m.service, "poddisruptionbudget.yaml": &m.budget, "networkpolicy.yaml": &m.network,
	}
	for name, text := range files {
		if into[name] == nil {
			return nil, fmt.Errorf("%s: of no kind that is known here", name)
		}
		if err := yaml.UnmarshalStrict([]byte(text), into[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, kind := range []struct{ got, want string }{
		{m.filter.APIVersion + " " + m.filter.Kind, "apps/v1 StatefulSet"},
		{migrate.APIVersion + " " + migrate.Kind, "batch/v1 Job"},
		{topics.APIVersion + " " + topics.Kind, "batch/v1 Job"},
		{m.config.APIVersion + " " + m.config.Kind, "v1 ConfigMap"},
		{m.service.APIVersion + " " + m.service.Kind, "v1 Service"},
		{m.budget.APIVersion + " " + m.budget.Kind, "policy/v1 PodDisruptionBudget"},
		{m.network.APIVersion + " " + m.network.Kind, "networking.k8s.io/v1 NetworkPolicy"},
	} {
		if kind.got != kind.want {
			return nil, fmt.Errorf("%s where %s is expected", kind.got, kind.want)
		}
	}
	m.jobs = []batch.Job{migrate, topics}
	return m, nil
}

// TestManifests: they decode strictly, fit each other, the program and the
// configuration that they carry.
func TestManifests(t *testing.T) {
	t.Parallel()
	m, err := decode(files(t))
	require.NoError(t, err)
	require.Empty(t, m.faults(t))
}

// secured are the files with each line taken that is a comment, for TLS and
// logins, and the line left out that it stands for.
func secured(t *testing.T) map[string]string {
	t.Helper()
	all := files(t)
	optional := regexp.MustCompile(`# ((?:tls|sasl): \{.*|username: .*)`)
	instead := regexp.MustCompile(`(?m)^( +(?:- )?).*\n +# instead: (.*)$`)
	for name, count := range map[string][2]int{"configmap.yaml": {4, 1}, "migrate-job.yaml": {0, 1}} {
		text := all[name]
		require.Len(t, optional.FindAllString(text, -1), count[0], name)
		require.Len(t, instead.FindAllString(text, -1), count[1], name)
		all[name] = instead.ReplaceAllString(optional.ReplaceAllString(text, "$1"), "${1}${2}")
	}
	return all
}

// TestManifestsWithTLS: the lines that are comments are good as they stand, and
// each pod that reads them has their files.
func TestManifestsWithTLS(t *testing.T) {
	t.Parallel()
	m, err := decode(secured(t))
	require.NoError(t, err)
	require.Empty(t, m.faults(t))

	pods := m.pods()
	require.Contains(t, pods[1].mounted(), "/etc/dedup/secrets/postgres-ca.crt")
	require.Contains(t, pods[1].container.Env[0].Value, "sslrootcert=/etc/dedup/secrets/postgres-ca.crt")
	for _, file := range []string{"kafka-ca.crt", "kafka-password", "redis-ca.crt", "postgres-ca.crt"} {
		for _, p := range []pod{pods[0], pods[2]} { // the filter and the topics
			require.Contains(t, p.mounted(), "/etc/dedup/secrets/"+file, p.name)
		}
		changed := secured(t)
		changed["statefulset.yaml"] = strings.Replace(changed["statefulset.yaml"], "path: "+file, "path: other", 1)
		m, err := decode(changed)
		require.NoError(t, err)
		require.Contains(t, strings.Join(m.faults(t), "\n"), file, "negative control")
	}
}

// TestManifestsWithoutTLS: what only TLS or a login needs keeps no pod from
// starting where it is not.
func TestManifestsWithoutTLS(t *testing.T) {
	t.Parallel()
	m, err := decode(files(t))
	require.NoError(t, err)
	plain := m.config.Data["dedup.yaml"]
	for _, p := range m.pods() {
		for _, v := range p.spec.Volumes {
			if v.Projected == nil {
				continue
			}
			for _, s := range v.Projected.Sources {
				for _, i := range s.Secret.Items {
					needed := !strings.HasPrefix(i.Path, "kafka-") && !strings.HasSuffix(i.Path, "-ca.crt")
					require.Equal(t, !needed, s.Secret.Optional != nil && *s.Secret.Optional, "%s: %s", p.name, i.Path)
				}
			}
		}
	}
	require.NotRegexp(t, `(?m)^[^#]*-ca\.crt`, plain)
}

// TestManifestsBite is the negative control: each change is refused or found.
func TestManifestsBite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, from, to, says string }{
		{"statefulset.yaml", "replicas: 2", "replica: 2", "unknown field"},
		{"statefulset.yaml", "replicas: 2", "replicas: two", "statefulset.yaml"},
		{"statefulset.yaml", "replicas: 2", "replicas: 2\n  replicas: 3", "already set"},
		{"poddisruptionbudget.yaml", "policy/v1", "policy/v1beta1", "policy/v1beta1 PodDisruptionBudget"},
		{"statefulset.yaml", "terminationGracePeriodSeconds: 45", "terminationGracePeriodSeconds: 30", "terminationGracePeriodSeconds"},
		{"configmap.yaml", "shutdown_grace: 25s", "shutdown_grace: 60s", "terminationGracePeriodSeconds"},
		{"configmap.yaml", "shutdown_grace", "shutdown_grase", "unknown key"},
		{"configmap.yaml", ":9090", ":9091", "port ops"},
		{"configmap.yaml", "slot: $ordinal", "slot: auto", "processor.slot"},
		{"configmap.yaml", "kafka-2.kafka:9092", "kafka-2.kafka:9093", "no way out to port 9093"},
		{"configmap.yaml", "secrets/redis-password", "secrets/redis", "no such file"},
		{"statefulset.yaml", "{path: /healthz, port: ops}", "{path: /health, port: ops}", "probe"},
		{"statefulset.yaml", "{path: /readyz, port: ops}", "{path: /readyz, port: 8080}", "probe"},
		{"statefulset.yaml", "prometheus.io/port: \"9090\"", "prometheus.io/port: \"8080\"", "prometheus.io/port"},
		{"statefulset.yaml", "matchLabels: {app.kubernetes.io/name: dedup-ledger, app.kubernetes.io/component: filter}", "matchLabels: {app: dedup}", "labels"},
		{"service.yaml", "component: filter}", "component: filters}", "labels"},
		{"service.yaml", "component: filter}", "component: filter}\n  type: LoadBalancer", "headless"},
		{"service.yaml", "selector: {app.kubernetes.io/name: dedup-ledger, app.kubernetes.io/component: filter}", "selector: {app.kubernetes.io/name: dedup-ledger}", "labels"},
		{"poddisruptionbudget.yaml", "component: filter}", "component: filters}", "labels"},
		{"networkpolicy.yaml", "{app.kubernetes.io/name: dedup-ledger}\n  policyTypes", "{app.kubernetes.io/name: dedup}\n  policyTypes", "labels"},
		{"statefulset.yaml", "runAsNonRoot: true", "runAsNonRoot: false", "root"},
		{"migrate-job.yaml", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "root"},
		{"statefulset.yaml", "drop: [ALL]", "drop: []", "root"},
		{"migrate-job.yaml", "dedup-ledger:0.1.0", "dedup-ledger:0.2.0", "image"},
		{"statefulset.yaml", "value: 900MiB", "value: 1200MiB", "GOMEMLIMIT"},
		{"statefulset.yaml", "[run, --config", "[run, --confog", "unknown flag"},
		{"topics-job.yaml", "[topics, ensure", "[topics, make", "no such command: dedup topics make"},
		{"migrate-job.yaml", "DEDUP_POSTGRES_URL", "DEDUP_POSTGRES_URI", "DEDUP_POSTGRES_URI"},
		{"migrate-job.yaml", "mountPath: /etc/dedup/secrets", "mountPath: /etc/secrets", "no such file"},
	} {
		changed := files(t)
		require.Contains(t, changed[c.file], c.from)
		changed[c.file] = strings.Replace(changed[c.file], c.from, c.to, 1)
		m, err := decode(changed)
		said := fmt.Sprint(err)
		if err == nil {
			said = strings.Join(m.faults(t), "\n")
		}
		require.Contains(t, said, c.says, "%s: %s", c.file, c.to)
	}
}
