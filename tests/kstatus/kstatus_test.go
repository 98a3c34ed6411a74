// Package kstatus asks kstatus' own code, which Flux and Helm use, about the states of a FrugalityBenchmark.
package kstatus

import (
	"os"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

// What each state in states.json must be for kstatus. Only a Pass of this very generation opens a gate.
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

// states.json is written from the operator's own code (operator/tests/kstatus.rs), which also checks it.
func states(t *testing.T) map[string]map[string]any {
	t.Helper()
	text, err := os.ReadFile("states.json")
	if err != nil {
		t.Fatal(err)
	}
	// Of apimachinery, for whole numbers must be such.
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

func TestEachStateIsWhatKstatusShallMakeOfIt(t *testing.T) {
	found := states(t)
	for name := range found {
		if _, known := expected[name]; !known {
			t.Errorf("nothing is expected of %q", name)
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

// Why the CRD gives every benchmark a status: without one, kstatus takes it for ready.
func TestWithoutAStatusItWouldBeCurrent(t *testing.T) {
	object := states(t)["created"]
	delete(object, "status")
	if got := compute(t, object); got.Status != status.CurrentStatus {
		t.Errorf("%s: the default of the CRD's status is no longer needed", got.Status)
	}
}

// The message of a gate that stays shut says why.
func TestAFailureIsExplained(t *testing.T) {
	for _, name := range []string{"Fail", "Reported", "Inconclusive", "Invalid", "Error"} {
		if got := compute(t, states(t)[name]); got.Message == "" {
			t.Errorf("%s has no message", name)
		}
	}
}
