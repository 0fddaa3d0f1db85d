/** As a `ref`: the field has the focus when it appears. One and the same function, so it is called for that alone. */
export const focused = (field: HTMLElement | null): void => field?.focus();
