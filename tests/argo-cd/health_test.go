// Package argocd runs the health script for Argo CD, with the Lua engine and the libraries that Argo CD gives to scripts.
package argocd

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"
	luajson "layeh.com/gopher-json"
	"sigs.k8s.io/yaml"
)

const (
	// Argo CD's repository has the same layout. The folder can be contributed unchanged.
	folder = "../../gitops/argo-cd/resource_customizations/frugality.dev/FrugalityBenchmark"
	// The operator's code writes and checks this file (operator/tests/kstatus.rs).
	statesFile = "../kstatus/states.json"
	// The script may take this long, as in Argo CD (util/lua/lua.go).
	longest = time.Second
)

// Health is what a script returns.
type health struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

// The health that each state must have. Only a Pass of the current generation is healthy.
var expected = map[string]string{
	"created":             "Progressing",
	"running":             "Progressing",
	"suspended":           "Suspended",
	"Pass":                "Healthy",
	"Reported":            "Degraded",
	"Fail":                "Degraded",
	"Inconclusive":        "Degraded",
	"Invalid":             "Degraded",
	"Error":               "Degraded",
	"unreadable":          "Degraded",
	"edited after a Pass": "Progressing",
	"edited after a Fail": "Progressing",
	"re-run after a Pass": "Progressing",
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The libraries that util/lua/lua.go opens without useOpenLibs, except its restricted os.
func run(t *testing.T, object map[string]any) health {
	t.Helper()
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage,
		lua.BaseLibName: lua.OpenBase,
		lua.TabLibName:  lua.OpenTable,
	} {
		call := lua.P{Fn: state.NewFunction(open), NRet: 0, Protect: true}
		if err := state.CallByParam(call, lua.LString(name)); err != nil {
			t.Fatal(err)
		}
	}
	limit, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	state.SetContext(limit)
	state.SetGlobal("obj", luajson.DecodeValue(state, object))
	if err := state.DoString(string(read(t, filepath.Join(folder, "health.lua")))); err != nil {
		t.Fatal(err)
	}
	text, err := luajson.Encode(state.Get(-1))
	if err != nil {
		t.Fatal(err)
	}
	var result health
	if err := json.Unmarshal(text, &result); err != nil {
		t.Fatal(err)
	}
	return result
}

func states(t *testing.T) map[string]map[string]any {
	t.Helper()
	var states map[string]map[string]any
	if err := json.Unmarshal(read(t, statesFile), &states); err != nil {
		t.Fatal(err)
	}
	return states
}

func TestEachStateHasTheExpectedHealth(t *testing.T) {
	found := states(t)
	for name := range found {
		if _, known := expected[name]; !known {
			t.Errorf("no expected health for %q", name)
		}
	}
	for name, want := range expected {
		object, exists := found[name]
		if !exists {
			t.Errorf("states.json has no %q", name)
			continue
		}
		got := run(t, object)
		if got.Status != want {
			t.Errorf("%s: %s (%s), not %s", name, got.Status, got.Message, want)
		}
		if got.Message == "" {
			t.Errorf("%s has no message", name)
		}
	}
}

// A benchmark without a status is progressing, so Argo CD waits.
func TestABenchmarkWithoutAStatusIsProgressing(t *testing.T) {
	object := states(t)["created"]
	delete(object, "status")
	if got := run(t, object); got.Status != "Progressing" {
		t.Errorf("%s: a wave would go on before the operator sees the benchmark", got.Status)
	}
}

// The tests in Argo CD's own form, over objects that a real API server printed.
func TestTheTestsForArgoCDPass(t *testing.T) {
	var file struct {
		Tests []struct {
			InputPath    string `json:"inputPath"`
			HealthStatus health `json:"healthStatus"`
		} `json:"tests"`
	}
	if err := yaml.Unmarshal(read(t, filepath.Join(folder, "health_test.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Tests) == 0 {
		t.Fatal("health_test.yaml has no tests")
	}
	for _, test := range file.Tests {
		var object map[string]any
		if err := yaml.Unmarshal(read(t, filepath.Join(folder, test.InputPath)), &object); err != nil {
			t.Fatal(err)
		}
		if got := run(t, object); got != test.HealthStatus {
			t.Errorf("%s: %+v, not %+v", test.InputPath, got, test.HealthStatus)
		}
	}
}
