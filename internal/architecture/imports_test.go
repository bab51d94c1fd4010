// Package architecture tests the rules about which package may import which.
package architecture

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "switchyard"

// layers are the packages from top to bottom; a package may import only packages below it.
var layers = []string{
	"cmd/switchyard",
	"handlers",
	"handlers/api",
	"handlers/console",
	"handlers/mcp",
	"views",
	"static",
	"internal/projectserver",
	"internal/web",
	"internal/poll",
	"internal/bot/matrix",
	"internal/bot/slack",
	"internal/notify",
	"internal/bot",
	"internal/agentrun",
	"internal/sample",
	"internal/service",
	"internal/upstream",
	"internal/signin",
	"internal/login",
	"internal/store/transfer",
	"internal/store/sqlite",
	"internal/store/postgres",
	"internal/store",
	"internal/cluster",
	"internal/gitlog",
	"internal/board",
	"internal/supervise",
	"internal/feed",
	"internal/git",
	"internal/config",
	"internal/botfile",
	"internal/files",
	"internal/metrics",
	"internal/markdown",
	"internal/flow",
	"internal/otlp",
	"internal/fold",
	"internal/neterr",
	"internal/keyed",
	"internal/wire",
	"internal/domain",
	"internal/jsonscan",
	"internal/clock",
}

// testSupport are packages for tests and measurements only.
var testSupport = []string{"internal/architecture", "internal/bench", "internal/boardtools", "internal/bottest", "internal/browsertest", "internal/gatewaytest", "internal/generate", "internal/gittest", "internal/logintest", "internal/pgtest", "internal/pushtest", "internal/receivers", "internal/screenshots", "internal/signintest", "internal/store/storetest", "internal/stress", "internal/waittest"}

// mustNotKnow lists forbidden imports: our packages by their path in the module, others by a prefix of their import path.
var mustNotKnow = map[string][]string{
	"views":                   {"internal/service", "net/http", "database/sql", "os"},
	"handlers":                {"internal/store", "internal/upstream", "internal/poll", "internal/agentrun", "database/sql", "modernc.org", "github.com/jackc"},
	"handlers/api":            {"handlers/console", "handlers/mcp", "internal/store", "internal/upstream", "internal/poll", "internal/agentrun", "database/sql", "modernc.org", "github.com/jackc"},
	"handlers/console":        {"handlers/api", "handlers/mcp", "internal/store", "internal/upstream", "internal/poll", "internal/agentrun", "database/sql", "modernc.org", "github.com/jackc"},
	"handlers/mcp":            {"handlers/api", "handlers/console", "views", "internal/store", "internal/upstream", "internal/poll", "internal/agentrun", "database/sql", "modernc.org", "github.com/jackc"},
	"internal/projectserver":  {"internal/service", "internal/store", "database/sql", "os"},
	"internal/web":            {"internal/service", "internal/store", "database/sql", "github.com/a-h/templ"},
	"internal/login":          {"internal/signin", "internal/service", "internal/store", "github.com/gorilla", "github.com/a-h/templ"},
	"internal/service":        {"internal/store/sqlite", "internal/store/postgres", "internal/upstream", "internal/signin", "internal/login", "internal/config", "internal/botfile", "net/http", "html", "database/sql", "modernc.org", "github.com/jackc", "github.com/pelletier", "github.com/a-h/templ"},
	"internal/store":          {"internal/store/sqlite", "internal/store/postgres", "modernc.org", "github.com/jackc", "net/http", "internal/config", "internal/signin", "internal/board", "internal/feed"},
	"internal/store/sqlite":   {"internal/store/postgres", "github.com/jackc", "internal/cluster", "net/http"},
	"internal/store/postgres": {"internal/store/sqlite", "modernc.org", "net/http"},
	"internal/upstream":       {"internal/store", "internal/signin", "database/sql"},
	"internal/signin":         {"internal/store", "internal/login", "database/sql"},
	"internal/cluster":        {"internal/service", "internal/store", "net/http", "database/sql", "github.com/jackc"},
	"internal/poll":           {"internal/bot", "internal/agentrun", "internal/board", "internal/store", "database/sql"},
	"internal/bot":            {"internal/poll", "internal/agentrun", "internal/board", "internal/store", "database/sql"},
	"internal/bot/matrix":     {"internal/service", "internal/store", "internal/bot/slack"},
	"internal/bot/slack":      {"internal/service", "internal/store", "internal/bot/matrix"},
	"internal/notify":         {"internal/service", "internal/store", "internal/poll", "internal/bot/slack", "internal/bot/matrix", "database/sql"},
	"internal/agentrun":       {"internal/poll", "internal/bot", "internal/board", "internal/store", "database/sql"},
	"internal/board":          {"internal/store", "net/http"},
	"internal/git":            {"internal/domain", "internal/wire", "net/http"},
	"internal/gitlog":         {"internal/store", "net/http"},
	"internal/otlp":           {"internal/store", "net/http", "database/sql"},
	"internal/feed":           {"internal/board", "internal/store", "net/http"},
}

type goPackage struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) map[string][]string {
	t.Helper()
	command := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	command.Dir = "../.."
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	found := map[string][]string{}
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		found[strings.TrimPrefix(p.ImportPath, module+"/")] = p.Imports
	}
}

func TestImportsGoDownTheLayersOnly(t *testing.T) {
	for name, imports := range packages(t) {
		if slices.Contains(testSupport, name) {
			continue
		}
		level := slices.Index(layers, name)
		if level < 0 {
			t.Errorf("%s has no place in the layers", name)
			continue
		}
		for _, imported := range imports {
			ours, ok := strings.CutPrefix(imported, module+"/")
			if ok && slices.Index(layers, ours) <= level {
				t.Errorf("%s imports %s, which is not below it", name, ours)
			}
		}
	}
}

func TestPackagesDoNotKnowWhatTheyMustNot(t *testing.T) {
	all := packages(t)
	for name, forbidden := range mustNotKnow {
		imports, ok := all[name]
		if !ok {
			t.Errorf("%s does not exist", name)
		}
		for _, imported := range imports {
			for _, f := range forbidden {
				ours := strings.TrimPrefix(imported, module+"/")
				if ours == f || strings.HasPrefix(ours, f+"/") {
					t.Errorf("%s must not know %s", name, imported)
				}
			}
		}
	}
}

func TestDomainKnowsTheStandardLibraryOnly(t *testing.T) {
	for _, imported := range packages(t)["internal/domain"] {
		if strings.Contains(imported, ".") || strings.HasPrefix(imported, module+"/") {
			t.Errorf("internal/domain imports %s", imported)
		}
	}
}
