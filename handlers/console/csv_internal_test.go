package console

import (
	"net/http/httptest"
	"testing"
	"time"
)

// slowClient counts how often it gets more time.
type slowClient struct {
	*httptest.ResponseRecorder
	times int
}

func (c *slowClient) SetWriteDeadline(time.Time) error {
	c.times++
	return nil
}

// TestEachPartOfATableHasTimeOfItsOwn, however long all of it takes.
func TestEachPartOfATableHasTimeOfItsOwn(t *testing.T) {
	client, left := &slowClient{ResponseRecorder: httptest.NewRecorder()}, 75
	err := writeCSV(client, "flow", []string{"id"}, func() (rows [][]string, more bool, err error) {
		left--
		return make([][]string, csvRows), left > 0, nil
	})
	if err != nil || client.times < 74 {
		t.Errorf("%d times, %v", client.times, err)
	}
}
