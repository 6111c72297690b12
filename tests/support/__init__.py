# SPDX-License-Identifier: BSD-3-Clause
"""support: what tests of several folders share: waiting with deadlines, services, traces, nodes made of files."""
