package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"
)

// page is what the demo writes on, with colours where a person looks at a terminal.
type page struct {
	out    io.Writer
	colour bool
}

const bold, dim, plain = "\x1b[1m", "\x1b[2m", "\x1b[0m"

// newPage follows https://no-color.org: NO_COLOR, set to anything, keeps a terminal plain.
func newPage(out io.Writer) *page {
	p := &page{out: out}
	if f, ok := out.(*os.File); ok && os.Getenv("NO_COLOR") == "" {
		info, err := f.Stat()
		p.colour = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

func (p *page) in(style, text string) string {
	if !p.colour {
		return text
	}
	return style + text + plain
}

func (p *page) title(text string) { fmt.Fprintf(p.out, "\n%s\n", p.in(bold, text)) }

// line says what was seen, and when: since the story began.
func (p *page) line(since time.Duration, text string) {
	fmt.Fprintf(p.out, "%s  %s\n", p.in(dim, fmt.Sprintf("%7.2f s", since.Seconds())), text)
}

// table writes rows in columns. Names of frames belong into the last one: how wide they are is the terminal's own secret.
func (p *page) table(head []string, rows [][]string) {
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{head}, rows...) {
		fmt.Fprintf(w, "  %s\n", strings.Join(row, "\t"))
	}
	w.Flush()
}

// printRuns is the end of the demo: all runs, what became of them, and how long it took.
func (d *demo) printRuns() {
	d.page.title("All runs")
	var rows [][]string
	for _, r := range d.runs {
		rows = append(rows, []string{r.label(), r.outcome(), fmt.Sprintf("%.2f s", r.took.Seconds()), fmt.Sprintf("%q", r.screen())})
	}
	d.page.table([]string{"run", "outcome", "time", "screen"}, rows)
}
