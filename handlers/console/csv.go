package console

import (
	"encoding/csv"
	"net/http"
	"strings"

	"switchyard/internal/web"
)

// csvRows is how many rows of a table are in memory: there may be 100,000, and many readers.
const csvRows = 1000

// writeCSV writes a table to be saved under a name. next returns its next rows, and whether there are more; its first
// error is the answer.
func writeCSV(
	w http.ResponseWriter, name string, header []string, next func() (rows [][]string, more bool, err error),
) error {
	out := csv.NewWriter(w)
	for begun, more := false, true; more; begun = true {
		var rows [][]string
		var err error
		rows, more, err = next()
		switch {
		case err != nil && begun:
			panic(http.ErrAbortHandler) // so that nobody takes what was sent as complete
		case err != nil:
			return err
		case !begun:
			h := w.Header()
			h.Set("Content-Type", "text/csv; charset=utf-8")
			h.Set("Cache-Control", "no-store")
			h.Set("Content-Disposition", `attachment; filename="`+name+`.csv"`)
			rows = append([][]string{header}, rows...)
		}
		for _, row := range rows {
			for i := range row {
				row[i] = cell(row[i])
			}
		}
		if begun {
			web.LimitPart(w)
		}
		if out.WriteAll(rows) != nil { // the client is gone
			return nil
		}
	}
	return nil
}

// cell returns text that no spreadsheet takes as a formula.
func cell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
