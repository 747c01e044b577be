// Tasks are data: no package here belongs to belay.
module suites

go 1.26.0
