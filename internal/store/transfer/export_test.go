package transfer

// Columns returns the columns that are moved of each table.
func Columns() map[string][]string {
	columns := map[string][]string{}
	for _, t := range tables {
		columns[t.name] = t.columns
	}
	return columns
}
