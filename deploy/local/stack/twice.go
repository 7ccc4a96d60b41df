package stack

import (
	"slices"
	"strings"
)

// second ends the name of a service's second process.
const second = "-2"

// running are the names of the processes that services run as: each service, and then those that run twice.
func (c Config) running() []string {
	names := slices.Clone(Names)
	for _, name := range Names {
		if slices.Contains(c.Twice, name) {
			names = append(names, name+second)
		}
	}
	return names
}

// serviceOf is the service that a process runs.
func serviceOf(process string) string { return strings.TrimSuffix(process, second) }

// place is where a process's ports are counted, whichever others run.
func place(process string) int {
	i := slices.Index(Names, serviceOf(process))
	if strings.HasSuffix(process, second) {
		i += len(Names)
	}
	return i
}
