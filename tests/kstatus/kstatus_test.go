// Package kstatus checks the states of a FrugalityBenchmark with the kstatus library, which Flux and Helm use.
package kstatus

import (
	"os"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

// The status that kstatus must compute for each state in states.json. Only a Pass of the current generation
// opens a gate.
var expected = map[string]status.Status{
	"created":             status.InProgressStatus,
	"running":             status.InProgressStatus,
	"suspended":           status.InProgressStatus,
	"Pass":                status.CurrentStatus,
	"Reported":            status.FailedStatus,
	"Fail":                status.FailedStatus,
	"Inconclusive":        status.FailedStatus,
	"Invalid":             status.FailedStatus,
	"Error":               status.FailedStatus,
	"unreadable":          status.FailedStatus,
	"edited after a Pass": status.InProgressStatus,
	"edited after a Fail": status.InProgressStatus,
	"re-run after a Pass": status.InProgressStatus,
}

// The operator's code writes and checks states.json (operator/tests/kstatus.rs).
func states(t *testing.T) map[string]map[string]any {
	t.Helper()
	text, err := os.ReadFile("states.json")
	if err != nil {
		t.Fatal(err)
	}
	// apimachinery's json, because it decodes whole numbers as int64 instead of float64.
	var states map[string]any
	if err := json.Unmarshal(text, &states); err != nil {
		t.Fatal(err)
	}
	objects := map[string]map[string]any{}
	for name, object := range states {
		objects[name] = object.(map[string]any)
	}
	return objects
}

func compute(t *testing.T, object map[string]any) *status.Result {
	t.Helper()
	result, err := status.Compute(&unstructured.Unstructured{Object: object})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestKstatusComputesTheExpectedStatus(t *testing.T) {
	found := states(t)
	for name := range found {
		if _, known := expected[name]; !known {
			t.Errorf("no expected status for %q", name)
		}
	}
	for name, want := range expected {
		object, exists := found[name]
		if !exists {
			t.Errorf("states.json has no %q", name)
			continue
		}
		if got := compute(t, object); got.Status != want {
			t.Errorf("%s: %s (%s), not %s", name, got.Status, got.Message, want)
		}
	}
}

// The reason why the CRD has a default status: kstatus considers an object without a status ready.
func TestABenchmarkWithoutAStatusWouldBeCurrent(t *testing.T) {
	object := states(t)["created"]
	delete(object, "status")
	if got := compute(t, object); got.Status != status.CurrentStatus {
		t.Errorf("%s: the default of the CRD's status is no longer needed", got.Status)
	}
}

// The message of a gate that stays closed gives the reason.
func TestAFailureIsExplained(t *testing.T) {
	for _, name := range []string{"Fail", "Reported", "Inconclusive", "Invalid", "Error"} {
		if got := compute(t, states(t)[name]); got.Message == "" {
			t.Errorf("%s has no message", name)
		}
	}
}
