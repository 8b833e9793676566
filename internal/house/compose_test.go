package house

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"dedupledger/internal/app/config"
	"dedupledger/internal/devservices"
)

// composition is docker-compose.yml: all that it may say, and nothing else.
type composition struct {
	Dedup    yaml.Node              `yaml:"x-dedup"`
	Services map[string]*composed   `yaml:"services"`
	Volumes  map[string]*emptyBlock `yaml:"volumes"`
}

type emptyBlock struct{}

type composed struct {
	Image string
	Build struct{ Context, Target string }

	Command, Entrypoint []string
	Environment         map[string]string
	Ports, Volumes      []string
	Profiles            []string
	Restart             string
	StopGracePeriod     string   `yaml:"stop_grace_period"`
	ReadOnly            bool     `yaml:"read_only"`
	CapDrop             []string `yaml:"cap_drop"`
	SecurityOpt         []string `yaml:"security_opt"`
	Healthcheck         *struct {
		Test              []string
		Interval, Timeout string
		Retries           int
	}
	DependsOn map[string]struct{ Condition string } `yaml:"depends_on"`
}

const ownImage = "dedup-ledger:local"

func readComposition(t *testing.T) *composition {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docker-compose.yml"))
	require.NoError(t, err)
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	var c composition
	require.NoError(t, d.Decode(&c))
	require.NotEmpty(t, c.Services)
	return &c
}

// interpolated puts the defaults of variables in, as Compose does.
func interpolated(s string) string {
	return regexp.MustCompile(`\$\{[A-Z_]+:-([^}]*)\}`).ReplaceAllString(s, "$1")
}

func TestComposeIsOfThisMachineAlone(t *testing.T) {
	t.Parallel()
	c := readComposition(t)
	pinned := []string{devservices.KafkaImage, devservices.RedisImage, devservices.PostgresImage, ownImage}
	for name, s := range c.Services {
		require.Contains(t, pinned, s.Image, name)
		for _, port := range s.Ports {
			require.Regexp(t, `^127\.0\.0\.1:\d+:\d+$`, interpolated(port), name)
		}
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if strings.HasPrefix(from, ".") {
				_, err := os.Stat(filepath.Join(root, from))
				require.NoError(t, err, name)
				require.True(t, strings.HasSuffix(v, ":ro"), "%s: %s", name, v)
			} else {
				require.Contains(t, c.Volumes, from, name)
			}
		}
		for other, d := range s.DependsOn {
			require.Contains(t, c.Services, other, name)
			require.Contains(t, []string{"service_healthy", "service_completed_successfully"}, d.Condition, name)
			if d.Condition == "service_healthy" {
				require.NotNil(t, c.Services[other].Healthcheck, "%s waits for the health of %s", name, other)
			}
		}
	}
	for _, name := range []string{"kafka", "redis", "postgres"} {
		require.NotNil(t, c.Services[name].Healthcheck, name)
		require.True(t, strings.HasPrefix(c.Services[name].Volumes[0], name+":"), "%s keeps its data in a named volume", name)
	}
	require.NotNil(t, c.Services["dedup"].Healthcheck)
}

// TestComposeConfiguresTheProgram: what the program is given is known to it and
// allowed.
func TestComposeConfiguresTheProgram(t *testing.T) {
	t.Parallel()
	needs := map[string][]string{
		"migrate": {"postgres.url"}, "topics": {"kafka.brokers"}, "dedup": config.Required(),
		"clean": {"kafka.brokers"}, "duplicates": {"kafka.brokers"},
	}
	var ours []string
	for name, s := range readComposition(t).Services {
		if s.Image != ownImage {
			continue
		}
		ours = append(ours, name)
		require.Equal(t, "source", interpolated(s.Build.Target), "up needs no other step")
		require.True(t, s.ReadOnly)
		var environ []string
		for k, v := range s.Environment {
			environ = append(environ, k+"="+interpolated(v))
		}
		_, warnings, err := config.Load("", environ, needs[name]...)
		require.NoError(t, err, name)
		require.Empty(t, warnings, name)
	}
	require.Len(t, ours, len(needs))
}

func readRoot(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(text)
}

// TestImagesArePinnedOnce: what says the images' tags beside images.go says the
// same.
func TestImagesArePinnedOnce(t *testing.T) {
	t.Parallel()
	engine := readRoot(t, "internal/devservices/docker-local.sh")
	for name, image := range map[string]string{
		"KAFKA": devservices.KafkaImage, "REDIS": devservices.RedisImage, "POSTGRES": devservices.PostgresImage,
	} {
		require.Contains(t, engine, "\n"+name+"_IMAGE="+image+"\n")
		require.Regexp(t, `^[a-z/]+:\d+\.\d+`, image, "a tag that says major and minor")
	}
	_, kafka, _ := strings.Cut(devservices.KafkaImage, ":")
	require.Contains(t, readRoot(t, "internal/devservices/install.sh"), "\nkafka="+kafka+"\n")
}

// TestDockerfile: two targets, both static, without a shell, not root.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	text := readRoot(t, "Dockerfile")
	parts := regexp.MustCompile(`(?m)^FROM `).Split(text, -1)[1:]
	var names []string
	for _, p := range parts {
		head, body, _ := strings.Cut(p, "\n")
		from, name, _ := strings.Cut(head, " AS ")
		names = append(names, name)
		if name == "build" {
			mod := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(readRoot(t, "go.mod"))
			require.Regexp(t, `^golang:`+regexp.QuoteMeta(mod[1])+`\.\d+$`, from)
			continue
		}
		require.Equal(t, "scratch", from, name)
		require.Contains(t, body, "\nUSER 65532:65532\n", name)
		require.Contains(t, body, "\nENTRYPOINT [\"/dedup\"]\n", name)
	}
	require.Equal(t, []string{"binary", "build", "source"}, names, "binary is built without the others, source is the default")
}

// TestBuildContext: what is needed to build the program is let into the image's
// build, and nothing else of the top level.
func TestBuildContext(t *testing.T) {
	t.Parallel()
	var let []string
	for line := range strings.Lines(readRoot(t, ".dockerignore")) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "!"); ok {
			let = append(let, name)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", `{{if not .Standard}}{{with .Module}}{{if .Main}}{{$.ImportPath}}{{end}}{{end}}{{end}}`, "./cmd/dedup")
	cmd.Dir = root
	out, err := cmd.Output()
	require.NoError(t, err)
	needed := []string{"Makefile", "go.mod", "go.sum", "bin/dedup"}
	for p := range strings.FieldsSeq(string(out)) {
		top, _, _ := strings.Cut(strings.TrimPrefix(p, module+"/"), "/")
		needed = append(needed, top)
	}
	slices.Sort(needed)
	slices.Sort(let)
	require.Equal(t, slices.Compact(needed), let)
}

// TestDockerSlice: a test that is renamed does not drop out of the slice unseen.
func TestDockerSlice(t *testing.T) {
	t.Parallel()
	slice := regexp.MustCompile(`(?m)^DOCKER_SLICE := ((?:.*\$\\\n)*.*)$`).FindStringSubmatch(readRoot(t, "Makefile"))
	require.NotNil(t, slice)
	var tests string
	for _, f := range treeFiles(t, "_test.go") {
		if strings.HasPrefix(f.path, "integration/") {
			tests += f.text
		}
	}
	names := strings.Split(strings.ReplaceAll(slice[1], "$\\\n", ""), "|")
	require.Len(t, names, 7)
	for _, name := range names {
		require.Contains(t, tests, "\nfunc "+name+"(t *testing.T)")
	}
}
