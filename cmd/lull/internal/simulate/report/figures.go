package report

// Figures are a table with a row for each contender, or for each of its fleets or seeds.
type Figures struct {
	Columns []Column
	Rows    []Row
}

// A Column has a heading, and a sentence about it. Without the sentence it is explained by another column.
type Column struct{ Name, About string }

// A Row has a cell for each column.
type Row struct {
	Name  string // of the contender
	Cells []Cell
}

// A Cell is a figure. Best: no other figure of its column is certainly better.
type Cell struct {
	Text string
	Best bool
}

// Maps have a map for each contender, with a cell for each value of a parameter, or for each pair of values of two.
type Maps struct {
	Title, About string
	Legend       []MapCell // texts and classes
	X, Y         Parameter // X is across, Y is down. Without values of Y there is only X.
	Grids        []Grid
}

// A Parameter has a name and the values of its axis, as they were typed.
type Parameter struct {
	Name   string
	Values []string
}

// A Grid is the map of one contender: Cells[y][x].
type Grid struct {
	Name  string
	Cells [][]MapCell
}

// A MapCell has More in small letters below its Text. Class gives its colour, and Tip is shown under the pointer.
type MapCell struct{ Text, More, Class, Tip string }
