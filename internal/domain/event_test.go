package domain_test

import (
	"encoding/json"
	"strings"
	"testing"

	"switchyard/internal/domain"
)

func TestTheTypeOfAnEventIsBounded(t *testing.T) {
	long := strings.Repeat("x", 64<<10)
	r, err := domain.ParseRecord(json.RawMessage(`{"type":"` + long + `","timestamp_ms":1}`))
	if err != nil || len(r.Type) != domain.MaxText || !strings.Contains(string(r.JSON), long) {
		t.Errorf("a type of %d characters in a record of %d bytes: %v", len(r.Type), len(r.JSON), err)
	}
}
